/* Tables for `lane_formulas.h`; `benchmarks/coefficients.py` makes them.
 *
 * EXP_POWERS: 2^(j/16) to twelve bits, as bits less j << 19; EXP_SHIFTS: the logarithm of what the
 * rounding left out; GELU_SHIFTS: that times -2. EXP_NEAR_POWERS: 2^(j/32) to 24 bits, as bits less
 * j << 18. WIDE: the same of 2^(j/8), as bits less j << 20.
 *
 * The others describe S of GELU'(-t) = phi(t) (t0 - t) S(t), over sqrt(2 pi), around the middle of
 * each interval of t: 32 intervals that the low five bits of (bits of 1 + t) >> 20 number, or, WIDE,
 * 8 that the low three bits of (bits of 1 + t) >> 22 number, as many as a register of eight looks up
 * at once. SHAPES: lead (1 + a polynomial in t - center). NEAR_SHAPES: a polynomial alone.
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
        0x1.172658p-1f, 0x1.0fdb76p-1f, 0x1.09c3cep-1f, 0x1.049d22p-1f,
        0x1.003636p-1f, 0x1.f8d3b6p-2f, 0x1.f2372p-2f, 0x1.ec6a6ep-2f,
        0x1.e4f30ep-2f, 0x1.dcc8b8p-2f, 0x1.d62722p-2f, 0x1.d0ab44p-2f,
        0x1.cc1044p-2f, 0x1.c824eep-2f, 0x1.c4c54p-2f, 0x1.c1d652p-2f,
        0x1.be17ccp-2f, 0x1.ba08b6p-2f, 0x1.b6c2bcp-2f, 0x1.b410f4p-2f,
        0x1.b1cf7p-2f, 0x1.afe4f6p-2f, 0x1.ae3f48p-2f, 0x1.acd0eep-2f,
        0x1.4f0e7p-1f, 0x1.452b9cp-1f, 0x1.3c7c76p-1f, 0x1.34d132p-1f,
        0x1.2e02cp-1f, 0x1.27f0fap-1f, 0x1.228142p-1f, 0x1.1d9d74p-1f,
    },
    {
        -0x1.00064p-4f, -0x1.a91ff8p-5f, -0x1.656f5ep-5f, -0x1.2fee8ep-5f,
        -0x1.05109cp-5f, -0x1.c49608p-6f, -0x1.8b8952p-6f, -0x1.5c4092p-6f,
        -0x1.234ea8p-6f, -0x1.d48e44p-7f, -0x1.804bbcp-7f, -0x1.407768p-7f,
        -0x1.0f0f1p-7f, -0x1.d02fa2p-8f, -0x1.91b6bep-8f, -0x1.5ee96p-8f,
        -0x1.22e02cp-8f, -0x1.cfed7p-9f, -0x1.7a5f5ep-9f, -0x1.3a5a82p-9f,
        -0x1.093c86p-9f, -0x1.c57f3p-10f, -0x1.881498p-10f, -0x1.564ef6p-10f,
        -0x1.51e6bap-3f, -0x1.280642p-3f, -0x1.04c12ep-3f, -0x1.cdbe14p-4f,
        -0x1.9ad048p-4f, -0x1.6f2dc8p-4f, -0x1.499956p-4f, -0x1.2912bcp-4f,
    },
    {
        0x1.8bad18p-6f, 0x1.31bb04p-6f, 0x1.dfe468p-7f, 0x1.7e03bap-7f,
        0x1.340d6p-7f, 0x1.f6b3bap-8f, 0x1.9e9aa8p-8f, 0x1.595276p-8f,
        0x1.0b7c42p-8f, 0x1.85d908p-9f, 0x1.23e3b2p-9f, 0x1.bf576ep-10f,
        0x1.5db7fap-10f, 0x1.1632c2p-10f, 0x1.c167bap-11f, 0x1.6fe5d2p-11f,
        0x1.174442p-11f, 0x1.8ed56p-12f, 0x1.265838p-12f, 0x1.be759ep-13f,
        0x1.5a6b98p-13f, 0x1.12120ap-13f, 0x1.b8f7d8p-14f, 0x1.67ef9ep-14f,
        0x1.6d9bf2p-4f, 0x1.32fd86p-4f, 0x1.0359eep-4f, 0x1.b8c69p-5f,
        0x1.78a5fp-5f, 0x1.4390ap-5f, 0x1.175fecp-5f, 0x1.e4c656p-6f,
    },
    {
        -0x1.189472p-7f, -0x1.96fe7p-8f, -0x1.2c704cp-8f, -0x1.c2d32ap-9f,
        -0x1.57569ep-9f, -0x1.091a8ep-9f, -0x1.9e9eacp-10f, -0x1.480c86p-10f,
        -0x1.d80e9p-11f, -0x1.39adf8p-11f, -0x1.aef8b4p-12f, -0x1.30b448p-12f,
        -0x1.b9cbfp-13f, -0x1.476572p-13f, -0x1.eeb932p-14f, -0x1.7c4144p-14f,
        -0x1.083b5ap-14f, -0x1.52da7ap-15f, -0x1.c588e8p-16f, -0x1.3a7b4ep-16f,
        -0x1.c15b1p-17f, -0x1.4952a2p-17f, -0x1.ed6d0ep-18f, -0x1.78c902p-18f,
        -0x1.5abddep-5f, -0x1.18e9c6p-5f, -0x1.ca2104p-6f, -0x1.77e914p-6f,
        -0x1.364dap-6f, -0x1.01a066p-6f, -0x1.ae2864p-7f, -0x1.69074ap-7f,
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
        0x1.0cadd8p-1f, 0x1.f568ecp-2f, 0x1.d94de8p-2f, 0x1.c6657ep-2f,
        0x1.b85066p-2f, 0x1.af0a74p-2f, 0x1.40b0ccp-1f, 0x1.252658p-1f,
    },
    {
        -0x1.853beep-5f, -0x1.a6b066p-6f, -0x1.a76382p-7f, -0x1.af490ep-8f,
        -0x1.a1ea52p-9f, -0x1.a51f3p-10f, -0x1.15a58ep-3f, -0x1.5bb316p-4f,
    },
    {
        0x1.0deeb2p-6f, 0x1.c77f88p-8f, 0x1.4f85d6p-9f, 0x1.f288f8p-11f,
        0x1.547e3cp-12f, 0x1.ea0ca6p-14f, 0x1.19c12ep-4f, 0x1.2c4eb4p-5f,
    },
    {
        -0x1.5c584ep-8f, -0x1.d3a6bcp-10f, -0x1.022de2p-11f, -0x1.1b8006p-13f,
        -0x1.12c7d6p-15f, -0x1.1bd648p-17f, -0x1.fa98b2p-6f, -0x1.d639c8p-7f,
    },
    {
        0x1.a6b50cp-10f, 0x1.cbc3aap-12f, 0x1.833fc8p-14f, 0x1.3d9c14p-16f,
        0x1.b89efep-19f, 0x1.47906p-21f, 0x1.9d616ep-7f, 0x1.5372ep-8f,
    },
    {
        -0x1.f55e32p-12f, -0x1.bc2b98p-14f, -0x1.2b6b04p-16f, -0x1.6a1468p-19f,
        -0x1.77daeap-22f, -0x1.866304p-25f, -0x1.3b1b3p-8f, -0x1.ce19f2p-10f,
    },
    {
        0x1.11aa22p-13f, 0x1.9426bp-16f, 0x1.aa80aep-19f, 0x1.8987bp-22f,
        0x1.285508p-25f, 0x1.beb136p-29f, 0x1.b9ec3cp-10f, 0x1.24ba2ap-11f,
    },
};

#endif
