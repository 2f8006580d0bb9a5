/* Tables for `lane_formulas.h`; `benchmarks/coefficients.py` makes them.
 *
 * EXP_POWERS: 2^(j/16) to twelve bits, as bits less j << 19; EXP_SHIFTS: the logarithm of what the
 * rounding left out; GELU_SHIFTS: that times -2. EXP_NEAR_POWERS: 2^(j/32) to 24 bits, as bits less
 * j << 18. WIDE: the same of 2^(j/8), as bits less j << 20.
 *
 * The others describe S of GELU'(-t) = phi(t) (t0 - t) S(t), over sqrt(2 pi), on each of 32 intervals
 * of t that the low five bits of (bits of 1 + t) >> 20 number, or, WIDE, 8 that the low three bits of
 * (bits of 1 + t) >> 22 number, as many as a register of eight looks up at once. SHAPES: lead (1 + a
 * polynomial in t - center). NEAR_SHAPES: a polynomial in t, on intervals that 1 + 9/8 t numbers.
 */
#ifndef ACLNN_LANE_TABLES_H
#define ACLNN_LANE_TABLES_H

#include <stdint.h>

static const uint32_t EXP_POWERS[16] = {
    0x3f800000u, 0x3f7db000u, 0x3f7b9000u, 0x3f79c000u,
    0x3f783000u, 0x3f76f000u, 0x3f760000u, 0x3f756000u,
    0x3f750000u, 0x3f751000u, 0x3f756000u, 0x3f762000u,
    0x3f774000u, 0x3f78d000u, 0x3f7ac000u, 0x3f7d2000u,
};
static const float EXP_SHIFTS[16] = {
    0x0p+0f, -0x1.40ea36p-13f, 0x1.51eb06p-13f, 0x1.ae102ap-14f,
    0x1.ab493p-13f, 0x1.0bd64ap-13f, -0x1.ca8cep-16f, -0x1.6e6bdp-13f,
    0x1.c00c4p-14f, -0x1.3ef782p-13f, 0x1.29552p-13f, 0x1.696bfcp-14f,
    0x1.7b9c1cp-14f, -0x1.c81dd6p-15f, 0x1.b1d1bap-17f, 0x1.6ed6bap-14f,
};
static const float GELU_SHIFTS[16] = {
    0x0p+0f, 0x1.40ea36p-12f, -0x1.51eb06p-12f, -0x1.ae102ap-13f,
    -0x1.ab493p-12f, -0x1.0bd64ap-12f, 0x1.ca8cep-15f, 0x1.6e6bdp-12f,
    -0x1.c00c4p-13f, 0x1.3ef782p-12f, -0x1.29552p-12f, -0x1.696bfcp-13f,
    -0x1.7b9c1cp-13f, 0x1.c81dd6p-14f, -0x1.b1d1bap-16f, -0x1.6ed6bap-13f,
};
static const uint32_t EXP_NEAR_POWERS[32] = {
    0x3f800000u, 0x3f7ecd87u, 0x3f7daac3u, 0x3f7c980fu,
    0x3f7b95c2u, 0x3f7aa43au, 0x3f79c3d3u, 0x3f78f4f0u,
    0x3f7837f0u, 0x3f778d3au, 0x3f76f532u, 0x3f767043u,
    0x3f75fed7u, 0x3f75a15bu, 0x3f75583fu, 0x3f7523f6u,
    0x3f7504f3u, 0x3f74fbafu, 0x3f7508a4u, 0x3f752c4du,
    0x3f75672au, 0x3f75b9beu, 0x3f76248cu, 0x3f76a81eu,
    0x3f7744fdu, 0x3f77fbb8u, 0x3f78ccdfu, 0x3f79b907u,
    0x3f7ac0c7u, 0x3f7be4bau, 0x3f7d257du, 0x3f7e83b3u,
};
static const uint32_t EXP_WIDE_POWERS[8] = {
    0x3f800000u, 0x3f7b9000u, 0x3f783000u, 0x3f760000u,
    0x3f750000u, 0x3f756000u, 0x3f774000u, 0x3f7ac000u,
};
static const float EXP_WIDE_SHIFTS[8] = {
    0x0p+0f, 0x1.51eb06p-13f, 0x1.ab493p-13f, -0x1.ca8cep-16f,
    0x1.c00c4p-14f, 0x1.29552p-13f, 0x1.7b9c1cp-14f, 0x1.b1d1bap-17f,
};
static const float GELU_WIDE_SHIFTS[8] = {
    0x0p+0f, -0x1.51eb06p-12f, -0x1.ab493p-12f, 0x1.ca8cep-15f,
    -0x1.c00c4p-13f, -0x1.29552p-12f, -0x1.7b9c1cp-13f, -0x1.b1d1bap-16f,
};
static const uint32_t EXP_WIDE_NEAR_POWERS[8] = {
    0x3f800000u, 0x3f7b95c2u, 0x3f7837f0u, 0x3f75fed7u,
    0x3f7504f3u, 0x3f75672au, 0x3f7744fdu, 0x3f7ac0c7u,
};
static const float GELU_CENTERS[32] = {
    0x1.2p+0f, 0x1.6p+0f, 0x1.ap+0f, 0x1.ep+0f,
    0x1.1p+1f, 0x1.3p+1f, 0x1.5p+1f, 0x1.7p+1f,
    0x1.ap+1f, 0x1.ep+1f, 0x1.1p+2f, 0x1.3p+2f,
    0x1.5p+2f, 0x1.7p+2f, 0x1.9p+2f, 0x1.bp+2f,
    0x1.ep+2f, 0x1.1p+3f, 0x1.3p+3f, 0x1.5p+3f,
    0x1.7p+3f, 0x1.9p+3f, 0x1.bp+3f, 0x1.dp+3f,
    0x1p-4f, 0x1.8p-3f, 0x1.4p-2f, 0x1.cp-2f,
    0x1.2p-1f, 0x1.6p-1f, 0x1.ap-1f, 0x1.ep-1f,
};
static const float GELU_LEADS[32] = {
    0x1.172p-1f, 0x1.0fep-1f, 0x1.09cp-1f, 0x1.04ap-1f,
    0x1.004p-1f, 0x1.f8ep-2f, 0x1.f24p-2f, 0x1.ec6p-2f,
    0x1.e5p-2f, 0x1.dccp-2f, 0x1.d62p-2f, 0x1.d0ap-2f,
    0x1.cc2p-2f, 0x1.c82p-2f, 0x1.c4cp-2f, 0x1.c1ep-2f,
    0x1.be2p-2f, 0x1.bap-2f, 0x1.b6cp-2f, 0x1.b42p-2f,
    0x1.b1cp-2f, 0x1.afep-2f, 0x1.ae4p-2f, 0x1.acep-2f,
    0x1.4fp-1f, 0x1.452p-1f, 0x1.3c8p-1f, 0x1.34ep-1f,
    0x1.2ep-1f, 0x1.28p-1f, 0x1.228p-1f, 0x1.1dap-1f,
};
static const float GELU_SHAPES[5][32] = {
    {
        0x1.751bc8p-14f, -0x1.1101fep-14f, 0x1.d5ad02p-15f, -0x1.67ce0cp-15f,
        -0x1.38c776p-13f, -0x1.8eca28p-14f, -0x1.23c682p-14f, 0x1.5b0814p-14f,
        -0x1.b490b8p-14f, 0x1.2c39ecp-14f, 0x1.f1d7cp-15f, 0x1.8d7272p-14f,
        -0x1.1815bcp-13f, 0x1.625044p-15f, 0x1.7c2ce2p-15f, -0x1.608a88p-14f,
        -0x1.2cd388p-14f, 0x1.434c9ep-14f, 0x1.99997p-16f, -0x1.1a7fbp-13f,
        0x1.23ab8ap-13f, 0x1.783fbep-15f, -0x1.b559e4p-18f, -0x1.1fep-13f,
        0x1.612a76p-13f, 0x1.24a6d8p-13f, -0x1.6e60bp-15f, -0x1.888c9ep-13f,
        0x1.2ae152p-15f, -0x1.9fbdfep-13f, 0x1.1c7d78p-16f, -0x1.23e176p-15f,
    },
    {
        -0x1.d5a04ep-4f, -0x1.904d2p-4f, -0x1.585234p-4f, -0x1.2a89cap-4f,
        -0x1.04cf64p-4f, -0x1.caf918p-5f, -0x1.9673a8p-5f, -0x1.6a21fcp-5f,
        -0x1.33861cp-5f, -0x1.f73304p-6f, -0x1.a28688p-6f, -0x1.61246ap-6f,
        -0x1.2d9e42p-6f, -0x1.04863p-6f, -0x1.c648e8p-7f, -0x1.8f5ecep-7f,
        -0x1.4dd364p-7f, -0x1.0cb32p-7f, -0x1.b98acp-8f, -0x1.710b06p-8f,
        -0x1.3915f8p-8f, -0x1.0cd10ap-8f, -0x1.d293fp-9f, -0x1.98a7aap-9f,
        -0x1.02379p-2f, -0x1.d22c4ap-3f, -0x1.a5d22ep-3f, -0x1.7eb2ep-3f,
        -0x1.5c3d44p-3f, -0x1.3d8f6p-3f, -0x1.22749cp-3f, -0x1.0a42c2p-3f,
    },
    {
        0x1.6a3b1ap-5f, 0x1.1f695ep-5f, 0x1.cd9e4ep-6f, 0x1.76c07ap-6f,
        0x1.336578p-6f, 0x1.fd446p-7f, 0x1.a9a588p-7f, 0x1.66c802p-7f,
        0x1.198bbp-7f, 0x1.a1a4bp-8f, 0x1.3d3a6ep-8f, 0x1.ec145ep-9f,
        0x1.848d0ap-9f, 0x1.37dc9ep-9f, 0x1.fb9fe2p-10f, 0x1.a24556p-10f,
        0x1.3f64d6p-10f, 0x1.ccb48cp-11f, 0x1.56b1eap-11f, 0x1.058faap-11f,
        0x1.983f4p-12f, 0x1.44764ap-12f, 0x1.060ec4p-12f, 0x1.ad3da4p-13f,
        0x1.172b68p-3f, 0x1.e31574p-4f, 0x1.a3429ap-4f, 0x1.6d158ap-4f,
        0x1.3f157ap-4f, 0x1.17ae34p-4f, 0x1.ec20eep-5f, 0x1.b2469ap-5f,
    },
    {
        -0x1.017002p-6f, -0x1.7f5deep-7f, -0x1.21826ap-7f, -0x1.baf412p-8f,
        -0x1.5717f2p-8f, -0x1.0ce8b2p-8f, -0x1.aa277p-9f, -0x1.553104p-9f,
        -0x1.f2ae1p-10f, -0x1.51117cp-10f, -0x1.d59766p-11f, -0x1.4fea7cp-11f,
        -0x1.ebc96p-12f, -0x1.6f9edcp-12f, -0x1.17dp-12f, -0x1.b0dfep-13f,
        -0x1.2f816ap-13f, -0x1.88c9b2p-14f, -0x1.08c6dep-14f, -0x1.715e9ap-15f,
        -0x1.09516p-15f, -0x1.868eaep-16f, -0x1.25adbep-16f, -0x1.c1eeeap-17f,
        -0x1.090426p-4f, -0x1.ba71c8p-5f, -0x1.729c2ep-5f, -0x1.379a4cp-5f,
        -0x1.071292p-5f, -0x1.bdadc2p-6f, -0x1.7b1d9cp-6f, -0x1.439e3p-6f,
    },
    {
        0x1.541c1p-8f, 0x1.de52f4p-9f, 0x1.55a6e4p-9f, 0x1.ef2dc2p-10f,
        0x1.6be50ap-10f, 0x1.0f058p-10f, 0x1.98c2e8p-11f, 0x1.37ef68p-11f,
        0x1.a95eb2p-12f, 0x1.077b32p-12f, 0x1.522a3cp-13f, 0x1.bfe166p-14f,
        0x1.30ded8p-14f, 0x1.a99598p-15f, 0x1.2f98d2p-15f, 0x1.b9b246p-16f,
        0x1.1c0f62p-16f, 0x1.4ac89ap-17f, 0x1.9502f6p-18f, 0x1.02982ep-18f,
        0x1.565f42p-19f, 0x1.d33462p-20f, 0x1.475872p-20f, 0x1.d566fep-21f,
        0x1.c548f6p-6f, 0x1.6eac96p-6f, 0x1.29b624p-6f, 0x1.e560e2p-7f,
        0x1.8d6b52p-7f, 0x1.4694aep-7f, 0x1.0d972p-7f, 0x1.beca6p-8f,
    },
};
static const float GELU_NEAR_SHAPES[4][32] = {
    {
        0x1.51fc2ep-1f, 0x1.50305ep-1f, 0x1.4df94ep-1f, 0x1.4b6ce2p-1f,
        0x1.48a12ep-1f, 0x1.45aa4cp-1f, 0x1.429958p-1f, 0x1.3f7c48p-1f,
        0x1.3ae132p-1f, 0x1.34cddp-1f, 0x1.2f0948p-1f, 0x1.29a50cp-1f,
        0x1.24a66ap-1f, 0x1.200bd2p-1f, 0x1.1bd01cp-1f, 0x1.17ec68p-1f,
        0x1.12bc82p-1f, 0x1.0ca7ap-1f, 0x1.0777aep-1f, 0x1.030206p-1f,
        0x1.fe492cp-2f, 0x1.f788d2p-2f, 0x1.f1983cp-2f, 0x1.ec5564p-2f,
        0x1.548518p-1f, 0x1.5483a4p-1f, 0x1.547bp-1f, 0x1.54639ep-1f,
        0x1.543682p-1f, 0x1.53ee46p-1f, 0x1.53876p-1f, 0x1.530004p-1f,
    },
    {
        -0x1.3c92a6p-3f, -0x1.2925c4p-3f, -0x1.152e7cp-3f, -0x1.017df6p-3f,
        -0x1.dd308p-4f, -0x1.b9922ep-4f, -0x1.986aacp-4f, -0x1.79d086p-4f,
        -0x1.51038ep-4f, -0x1.21fd8ep-4f, -0x1.f5e6f4p-5f, -0x1.b50d4ep-5f,
        -0x1.7f005p-5f, -0x1.51b89ap-5f, -0x1.2b9062p-5f, -0x1.0b3568p-5f,
        -0x1.c769a4p-6f, -0x1.750042p-6f, -0x1.368fdcp-6f, -0x1.064676p-6f,
        -0x1.c07e4cp-7f, -0x1.839eap-7f, -0x1.523228p-7f, -0x1.298deep-7f,
        -0x1.69c514p-3f, -0x1.69343p-3f, -0x1.6769cp-3f, -0x1.642506p-3f,
        -0x1.5f6606p-3f, -0x1.594f64p-3f, -0x1.5213ecp-3f, -0x1.49eb92p-3f,
    },
    {
        0x1.db1586p-5f, 0x1.94e8c8p-5f, 0x1.58d54p-5f, 0x1.2612b2p-5f,
        0x1.f6eb72p-6f, 0x1.af8b86p-6f, 0x1.73c404p-6f, 0x1.419d32p-6f,
        0x1.0554c2p-6f, 0x1.9138p-7f, 0x1.3910e6p-7f, 0x1.f00b46p-8f,
        0x1.8e81a6p-8f, 0x1.44404p-8f, 0x1.0ae864p-8f, 0x1.bc11acp-9f,
        0x1.57bd18p-9f, 0x1.f532c6p-10f, 0x1.77daf2p-10f, 0x1.20ac08p-10f,
        0x1.c490e4p-11f, 0x1.690e1ep-11f, 0x1.247e4p-11f, 0x1.e04edep-12f,
        0x1.8e5c82p-4f, 0x1.8485f4p-4f, 0x1.747b28p-4f, 0x1.60e05cp-4f,
        0x1.4b80bap-4f, 0x1.358fc4p-4f, 0x1.1fd74p-4f, 0x1.0ad776p-4f,
    },
    {
        -0x1.4bb08cp-7f, -0x1.ee052cp-8f, -0x1.7555c8p-8f, -0x1.1e00ap-8f,
        -0x1.bbc71ep-9f, -0x1.5c5dbep-9f, -0x1.1478bap-9f, -0x1.bb4f3cp-10f,
        -0x1.447694p-10f, -0x1.b79c6cp-11f, -0x1.32cd34p-11f, -0x1.b785dcp-12f,
        -0x1.421ee4p-12f, -0x1.e1cef4p-13f, -0x1.6edd7cp-13f, -0x1.1bdc5cp-13f,
        -0x1.8dbe7p-14f, -0x1.014778p-14f, -0x1.5ab47ep-15f, -0x1.e36b2ap-16f,
        -0x1.5ae346p-16f, -0x1.fe495cp-17f, -0x1.7f6eccp-17f, -0x1.2589ap-17f,
        -0x1.5ed75ap-5f, -0x1.22c61ep-5f, -0x1.e479e2p-6f, -0x1.95a002p-6f,
        -0x1.553efcp-6f, -0x1.206beep-6f, -0x1.e9bd06p-7f, -0x1.a19664p-7f,
    },
};
static const float GELU_WIDE_CENTERS[8] = {
    0x1.8p+0f, 0x1.4p+1f, 0x1p+2f, 0x1.8p+2f,
    0x1.2p+3f, 0x1.ap+3f, 0x1p-2f, 0x1.8p-1f,
};
static const float GELU_WIDE_LEADS[8] = {
    0x1.0cap-1f, 0x1.f56p-2f, 0x1.d94p-2f, 0x1.c66p-2f,
    0x1.b86p-2f, 0x1.afp-2f, 0x1.40cp-1f, 0x1.252p-1f,
};
static const float GELU_WIDE_SHAPES[8][8] = {
    {
        0x1.a640fp-13f, 0x1.2390c2p-14f, 0x1.e15d5ep-14f, 0x1.8c3124p-15f,
        -0x1.223fcp-13f, 0x1.8d60dep-14f, -0x1.8460b2p-13f, 0x1.625e54p-14f,
    },
    {
        -0x1.72f0bp-4f, -0x1.afa57cp-5f, -0x1.ca0dccp-6f, -0x1.e5fb5p-7f,
        -0x1.e5e23ep-8f, -0x1.f443cep-9f, -0x1.bb3228p-3f, -0x1.2fa99cp-3f,
    },
    {
        0x1.013f0ap-5f, 0x1.d126bp-7f, 0x1.6aff5ep-8f, 0x1.18e16ap-9f,
        0x1.8be05cp-11f, 0x1.2312e6p-12f, 0x1.c1c0d8p-4f, 0x1.0645d4p-4f,
    },
    {
        -0x1.4c1708p-7f, -0x1.dda3acp-9f, -0x1.17985p-10f, -0x1.3f8e5cp-12f,
        -0x1.3fef98p-14f, -0x1.514f4p-16f, -0x1.945abap-5f, -0x1.9aafd8p-6f,
    },
    {
        0x1.92ca46p-9f, 0x1.d57aap-11f, 0x1.a2cb7cp-13f, 0x1.65d7e8p-15f,
        0x1.fff964p-18f, 0x1.850fb2p-20f, 0x1.49ecacp-6f, 0x1.2873e4p-7f,
    },
    {
        -0x1.ced976p-11f, -0x1.bba0f2p-13f, -0x1.3240c2p-15f, -0x1.8af4b8p-18f,
        -0x1.97433ap-21f, -0x1.bf25dap-24f, -0x1.f09de2p-8f, -0x1.8f5f5ep-9f,
    },
    {
        0x1.05e134p-12f, 0x1.9deeaap-15f, 0x1.d0e526p-18f, 0x1.bd6b02p-21f,
        0x1.5bdc8cp-24f, 0x1.0aacbp-27f, 0x1.61483p-9f, 0x1.fffe4ap-11f,
    },
    {
        -0x1.119c56p-14f, -0x1.6c3004p-17f, -0x1.43a756p-20f, -0x1.dd5242p-24f,
        -0x1.10212ep-27f, -0x1.2fe09ep-31f, -0x1.d254fp-11f, -0x1.33710ap-12f,
    },
};
static const float GELU_WIDE_NEAR_SHAPES[7][8] = {
    {
        0x1.544a26p-1f, 0x1.5263dap-1f, 0x1.4b6ef4p-1f, 0x1.3d3cdp-1f,
        0x1.29c41ep-1f, 0x1.15720ap-1f, 0x1.54851ap-1f, 0x1.54837ep-1f,
    },
    {
        -0x1.64596p-3f, -0x1.4b07dp-3f, -0x1.103dfp-3f, -0x1.839792p-4f,
        -0x1.e3f942p-5f, -0x1.15412p-5f, -0x1.69c93cp-3f, -0x1.697fd8p-3f,
    },
    {
        0x1.73a478p-4f, 0x1.2c2ccap-4f, 0x1.869d94p-5f, 0x1.9ff6eap-6f,
        0x1.759d28p-7f, 0x1.312e1ap-8f, 0x1.8f9ab2p-4f, 0x1.8ccdaep-4f,
    },
    {
        -0x1.2f54cep-5f, -0x1.83c79ap-6f, -0x1.7301d2p-7f, -0x1.1b8b66p-8f,
        -0x1.64ef38p-10f, -0x1.9acd4ep-12f, -0x1.81ac7cp-5f, -0x1.7278c2p-5f,
    },
    {
        0x1.66e4a2p-7f, 0x1.4e2ea6p-8f, 0x1.be9c8p-10f, 0x1.de4062p-12f,
        0x1.9f5836p-14f, 0x1.4ed97p-16f, 0x1.4c09f6p-6f, 0x1.1b0602p-6f,
    },
    {
        -0x1.0bbd66p-9f, -0x1.55cc8p-11f, -0x1.3445f4p-13f, -0x1.c81726p-16f,
        -0x1.0e8358p-18f, -0x1.30b47p-21f, -0x1.e9910ep-8f, -0x1.3578c8p-8f,
    },
    {
        0x1.7369p-13f, 0x1.3863fap-15f, 0x1.73ad5ap-18f, 0x1.78c8f4p-21f,
        0x1.2f1812p-24f, 0x1.dc79ecp-28f, 0x1.d6407p-10f, 0x1.5cb004p-11f,
    },
};

#endif
