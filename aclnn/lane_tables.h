/* Tables for `lane_formulas.h`; `benchmarks/coefficients.py` makes them.
 *
 * EXP_POWERS: 2^(j/16) to twelve bits, as bits less j << 19; EXP_SHIFTS: the logarithm of what the
 * rounding left out; GELU_SHIFTS: that times -2. The others describe S of GELU'(-t) =
 * phi(t) (t0 - t) S(t) around the middle of each of 32 intervals of t, which the low five bits of
 * (bits of 1 + t) >> 20 number: S(t)/sqrt(2 pi) = lead (1 + a polynomial in t - center), error 2^-27.4.
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
    -0x0p+0f, 0x1.40ea36p-12f, -0x1.51eb06p-12f, -0x1.ae102ap-13f,
    -0x1.ab493p-12f, -0x1.0bd64ap-12f, 0x1.ca8cep-15f, 0x1.6e6bdp-12f,
    -0x1.c00c4p-13f, 0x1.3ef782p-12f, -0x1.29552p-12f, -0x1.696bfcp-13f,
    -0x1.7b9c1cp-13f, 0x1.c81dd6p-14f, -0x1.b1d1bap-16f, -0x1.6ed6bap-13f,
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

#endif
