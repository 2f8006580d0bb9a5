/* Tables for `lane_formulas.h`; `benchmarks/coefficients.py` makes them.
 *
 * EXP_POWERS: 2^(j/16) to twelve bits; EXP_SHIFTS: the logarithm of what the rounding left out;
 * GELU_SHIFTS: what that adds to t^2. EXP_NEAR_POWERS: 2^(j/32) to 24 bits. WIDE: the same of
 * 2^(j/8), the powers as bits less j << 20.
 *
 * LOG: of sixteen intervals of m that (bits of m - LOG_FIRST) >> 19 numbers, 1/c for some c inside, and
 * ln(c) in two parts.
 *
 * The others describe factors of phi(t), over sqrt(2 pi): SLOPE, S of GELU'(-t) = phi(t) (t0 - t) S(t),
 * and MILLS, Mills' ratio M of GELU(-t) = -t phi(t) M(t). They do on each of 32 intervals of t that the
 * low five bits of (bits of place) >> 20 number, place = 1 + t, or, WIDE, 8 that the low three bits of
 * (bits of place) >> 21 number, place = 7 + 7/4 t, as many as a register of eight looks up at once; MORE
 * and the shapes of MILLS_WIDE: 16 that the low four bits of (bits of place) >> 21 number, place =
 * 1 + 5/4 t. SHAPES: lead (1 + a polynomial in z), z = t - center, WIDE (t - center) / place.
 * NEAR_SHAPES: a polynomial in t, place = 1 + 9/8 t, WIDE in z. Both are times e^(t^2 lack / 2), which
 * is what an exponential lacks whose ln(2) is 1 / (1 + lack) of the true one. LEADS of the 32 are 0
 * from 12 on: there a power may be less than floats can be.
 */
#ifndef ACLNN_LANE_TABLES_H
#define ACLNN_LANE_TABLES_H

#include <stdint.h>

static const float EXP_POWERS[16] = {
    0x1p+0f, 0x1.0b6p+0f, 0x1.172p+0f, 0x1.238p+0f,
    0x1.306p+0f, 0x1.3dep+0f, 0x1.4cp+0f, 0x1.5acp+0f,
    0x1.6ap+0f, 0x1.7a2p+0f, 0x1.8acp+0f, 0x1.9c4p+0f,
    0x1.ae8p+0f, 0x1.c1ap+0f, 0x1.d58p+0f, 0x1.ea4p+0f,
};
static const float EXP_SHIFTS[16] = {
    0x0p+0f, -0x1.40ea36p-13f, 0x1.51eb06p-13f, 0x1.ae102ap-14f,
    0x1.ab493p-13f, 0x1.0bd64ap-13f, -0x1.ca8cep-16f, -0x1.6e6bdp-13f,
    0x1.c00c4p-14f, -0x1.3ef782p-13f, 0x1.29552p-13f, 0x1.696bfcp-14f,
    0x1.7b9c1cp-14f, -0x1.c81dd6p-15f, 0x1.b1d1bap-17f, 0x1.6ed6bap-14f,
};
static const float GELU_SHIFTS[16] = {
    0x0p+0f, 0x1.40e66cp-12f, -0x1.51e70ap-12f, -0x1.ae0b18p-13f,
    -0x1.ab4424p-12f, -0x1.0bd32p-12f, 0x1.ca8776p-15f, 0x1.6e677ep-12f,
    -0x1.c006f8p-13f, 0x1.3ef3cp-12f, -0x1.29519ep-12f, -0x1.6967b8p-13f,
    -0x1.7b97a2p-13f, 0x1.c81876p-14f, -0x1.b1cc9cp-16f, -0x1.6ed266p-13f,
};
static const float EXP_NEAR_POWERS[32] = {
    0x1p+0f, 0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f,
    0x1.172b84p+0f, 0x1.1d4874p+0f, 0x1.2387a6p+0f, 0x1.29e9ep+0f,
    0x1.306fep+0f, 0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f,
    0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f,
    0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f,
    0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
    0x1.ae89fap+0f, 0x1.b7f77p+0f, 0x1.c199bep+0f, 0x1.cb720ep+0f,
    0x1.d5818ep+0f, 0x1.dfc974p+0f, 0x1.ea4afap+0f, 0x1.f50766p+0f,
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
    0x0p+0f, -0x1.51e70ap-12f, -0x1.ab4424p-12f, 0x1.ca8776p-15f,
    -0x1.c006f8p-13f, -0x1.29519ep-12f, -0x1.7b97a2p-13f, -0x1.b1cc9cp-16f,
};
static const uint32_t EXP_WIDE_NEAR_POWERS[8] = {
    0x3f800000u, 0x3f7b95c2u, 0x3f7837f0u, 0x3f75fed7u,
    0x3f7504f3u, 0x3f75672au, 0x3f7744fdu, 0x3f7ac0c7u,
};
#define LOG_FIRST 0x3f540000u
static const float LOG_INVERSES[16] = {
    0x1.2f684cp+0f, 0x1.24924ap+0f, 0x1.1a7b96p+0f, 0x1.111112p+0f,
    0x1.08421p+0f, 0x1p+0f, 0x1.e1e1e2p-1f, 0x1.c71c72p-1f,
    0x1.af286cp-1f, 0x1.99999ap-1f, 0x1.861862p-1f, 0x1.745d18p-1f,
    0x1.642c86p-1f, 0x1.555556p-1f, 0x1.47ae14p-1f, 0x1.3b13b2p-1f,
};
static const float LOG_HEADS[16] = {
    -0x1.5cp-3f, -0x1.118p-3f, -0x1.934p-4f, -0x1.084p-4f,
    -0x1.04p-5f, 0x0p+0f, 0x1.f08p-5f, 0x1.e28p-4f,
    0x1.6p-3f, 0x1.c9p-3f, 0x1.167p-2f, 0x1.462p-2f,
    0x1.73ap-2f, 0x1.9f3p-2f, 0x1.c9p-2f, 0x1.f13p-2f,
};
static const float LOG_LOWS[16] = {
    0x1.7f0958p-16f, 0x1.c4776p-17f, 0x1.43654ep-17f, -0x1.99959ep-16f,
    -0x1.5c89e8p-17f, 0x0p+0f, 0x1.185008p-16f, -0x1.f163aap-17f,
    -0x1.9f3ebp-16f, -0x1.0b0cacp-20f, 0x1.725eaep-16f, -0x1.d1778ep-16f,
    -0x1.40ea22p-17f, 0x1.1e65fcp-17f, -0x1.040cacp-19f, -0x1.c32144p-16f,
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
static const float GELU_WIDE_CENTERS[8] = {
    0x1.145146p+0f, 0x1.1dec0ep+1f, 0x1.b13b14p+1f, 0x1.222222p+2f,
    0x1.8a28a2p+2f, 0x1.0ef606p+3f, 0x1.589d8ap+3f, 0x1.111112p-2f,
};
static const float GELU_MORE_CENTERS[16] = {
    0x1.f49f4ap-1f, 0x1.61bed6p+0f, 0x1.c8dc8ep+0f, 0x1.17e4b2p+1f,
    0x1.60b60cp+1f, 0x1.c8253cp+1f, 0x1.17a17ap+2f, 0x1.4b17e4p+2f,
    0x1.93e93ep+2f, 0x1.fb587p+2f, 0x1.313b14p+3f, 0x1.64b17ep+3f,
    0x1.6c16c2p-4f, 0x1.29e412p-2f, 0x1.f81f82p-2f, 0x1.62fc96p-1f,
};
static const float SLOPE_LEADS[32] = {
    0x1.172p-1f, 0x1.0fep-1f, 0x1.09cp-1f, 0x1.04ap-1f,
    0x1.004p-1f, 0x1.f8ep-2f, 0x1.f24p-2f, 0x1.ec8p-2f,
    0x1.e52p-2f, 0x1.ddp-2f, 0x1.d66p-2f, 0x1.d0ep-2f,
    0x1.cc6p-2f, 0x1.c88p-2f, 0x1.c52p-2f, 0x1.c24p-2f,
    0x1.beap-2f, 0x1.bacp-2f, 0x1.b7ap-2f, 0x1.b52p-2f,
    0x1.b32p-2f, 0x0p+0f, 0x0p+0f, 0x0p+0f,
    0x1.4fp-1f, 0x1.452p-1f, 0x1.3c8p-1f, 0x1.34ep-1f,
    0x1.2ep-1f, 0x1.28p-1f, 0x1.228p-1f, 0x1.1dap-1f,
};
static const float SLOPE_SHAPES[5][32] = {
    {
        0x1.ef74ap-14f, -0x1.6913bcp-16f, 0x1.ea19dp-14f, 0x1.3fd436p-15f,
        -0x1.7a3f5ap-15f, 0x1.24d33cp-15f, 0x1.76461cp-14f, 0x1.4526d2p-16f,
        -0x1.f0764ep-14f, -0x1.0da9f4p-13f, -0x1.d5ff1ep-15f, 0x1.421994p-14f,
        -0x1.5c9d84p-15f, -0x1.27cd86p-16f, 0x1.ed478ap-14f, 0x1.16600cp-13f,
        0x1.b6159cp-14f, 0x1.87d866p-15f, 0x1.d58b48p-14f, 0x1.e57a9p-14f,
        0x1.6dd014p-16f, -0x1.ccfafp-14f, 0x1.19c3fcp-13f, 0x1.d1749ep-15f,
        0x1.615accp-13f, 0x1.2659ep-13f, -0x1.5b7feep-15f, -0x1.7f4ce6p-13f,
        0x1.680cbcp-15f, -0x1.88e73cp-13f, 0x1.0dde5ep-15f, -0x1.e7e778p-17f,
    },
    {
        -0x1.d56d6ep-4f, -0x1.900f24p-4f, -0x1.580906p-4f, -0x1.2a355cp-4f,
        -0x1.046fa4p-4f, -0x1.ca22ccp-5f, -0x1.95866ep-5f, -0x1.690636p-5f,
        -0x1.324aep-5f, -0x1.f44462p-6f, -0x1.9f449ep-6f, -0x1.5d8c76p-6f,
        -0x1.29ae7cp-6f, -0x1.002aa2p-6f, -0x1.bce08cp-7f, -0x1.8542d2p-7f,
        -0x1.428e5ep-7f, -0x1.ffb4eep-8f, -0x1.9ce1b8p-8f, -0x1.516a5ep-8f,
        -0x1.164fbap-8f, -0x1.ce0b0cp-9f, -0x1.81138ep-9f, -0x1.4121a2p-9f,
        -0x1.0236dp-2f, -0x1.d227dap-3f, -0x1.a5cadep-3f, -0x1.7ea8bcp-3f,
        -0x1.5c3052p-3f, -0x1.3d7fa6p-3f, -0x1.22621cp-3f, -0x1.0a2d7cp-3f,
    },
    {
        0x1.6a61aep-5f, 0x1.1f8fecp-5f, 0x1.cdebc6p-6f, 0x1.770e82p-6f,
        0x1.33b42cp-6f, 0x1.fde33ep-7f, 0x1.aa45ep-7f, 0x1.675274p-7f,
        0x1.1a1cep-7f, 0x1.a2b916p-8f, 0x1.3e600ep-8f, 0x1.ee79e8p-9f,
        0x1.8706eep-9f, 0x1.3a50e2p-9f, 0x1.005562p-9f, 0x1.a76c0ap-10f,
        0x1.449596p-10f, 0x1.d72158p-11f, 0x1.614fecp-11f, 0x1.1057bep-11f,
        0x1.addb62p-12f, 0x1.5a453ap-12f, 0x1.1c249p-12f, 0x1.d9c0eep-13f,
        0x1.17371ep-3f, 0x1.e32baap-4f, 0x1.a357e6p-4f, 0x1.6d2a28p-4f,
        0x1.3f299cp-4f, 0x1.17c1fep-4f, 0x1.ec480ap-5f, 0x1.b26d68p-5f,
    },
    {
        -0x1.017366p-6f, -0x1.7f6272p-7f, -0x1.218576p-7f, -0x1.baf83ep-8f,
        -0x1.571ad6p-8f, -0x1.0ceab8p-8f, -0x1.aa2a4cp-9f, -0x1.551ce2p-9f,
        -0x1.f28fa2p-10f, -0x1.50e57ep-10f, -0x1.d558ap-11f, -0x1.4fbc98p-11f,
        -0x1.eb84cap-12f, -0x1.6f50bap-12f, -0x1.17937ap-12f, -0x1.b0807cp-13f,
        -0x1.2f26a2p-13f, -0x1.88164ep-14f, -0x1.0835a4p-14f, -0x1.706f46p-15f,
        -0x1.08617p-15f, -0x1.84e0b8p-16f, -0x1.244174p-16f, -0x1.bf57b4p-17f,
        -0x1.0909d8p-4f, -0x1.ba7acp-5f, -0x1.72a344p-5f, -0x1.379feap-5f,
        -0x1.07170cp-5f, -0x1.bdb4ecp-6f, -0x1.7b235cp-6f, -0x1.43a2d2p-6f,
    },
    {
        0x1.542212p-8f, 0x1.de5a9ap-9f, 0x1.55abd8p-9f, 0x1.ef3448p-10f,
        0x1.6be964p-10f, 0x1.0f0876p-10f, 0x1.98c6fcp-11f, 0x1.37ddfcp-11f,
        0x1.a9461p-12f, 0x1.0759a6p-12f, 0x1.51fe3ap-13f, 0x1.bfa618p-14f,
        0x1.30b5eep-14f, 0x1.a93e08p-15f, 0x1.2f59ep-15f, 0x1.b9563p-16f,
        0x1.1bbf8ap-16f, 0x1.4a3bbp-17f, 0x1.94392ep-18f, 0x1.020528p-18f,
        0x1.555304p-19f, 0x1.d18578p-20f, 0x1.46167ap-20f, 0x1.d35c68p-21f,
        0x1.c55562p-6f, 0x1.6eb61ep-6f, 0x1.29bd7ap-6f, 0x1.e56c4p-7f,
        0x1.8d7426p-7f, 0x1.469b92p-7f, 0x1.0d9c86p-7f, 0x1.bed2e2p-8f,
    },
};
static const float SLOPE_NEAR_SHAPES[4][32] = {
    {
        0x1.51fc2ep-1f, 0x1.50305ep-1f, 0x1.4df94ep-1f, 0x1.4b6cep-1f,
        0x1.48a12ep-1f, 0x1.45aa4cp-1f, 0x1.429958p-1f, 0x1.3f7c48p-1f,
        0x1.3ae132p-1f, 0x1.34cddp-1f, 0x1.2f0948p-1f, 0x1.29a50cp-1f,
        0x1.24a66ap-1f, 0x1.200bd2p-1f, 0x1.1bd01cp-1f, 0x1.17ec6ap-1f,
        0x1.12bc82p-1f, 0x1.0ca7ap-1f, 0x1.0777aep-1f, 0x1.030206p-1f,
        0x1.fe492cp-2f, 0x1.f788d2p-2f, 0x1.f1983cp-2f, 0x1.ec5564p-2f,
        0x1.548518p-1f, 0x1.5483a4p-1f, 0x1.547bp-1f, 0x1.54639ep-1f,
        0x1.543682p-1f, 0x1.53ee46p-1f, 0x1.53876p-1f, 0x1.530004p-1f,
    },
    {
        -0x1.3c92a6p-3f, -0x1.2925c4p-3f, -0x1.152e7cp-3f, -0x1.017df4p-3f,
        -0x1.dd308p-4f, -0x1.b9922cp-4f, -0x1.986aacp-4f, -0x1.79d086p-4f,
        -0x1.51038ep-4f, -0x1.21fd8ep-4f, -0x1.f5e6f4p-5f, -0x1.b50d4ep-5f,
        -0x1.7f005p-5f, -0x1.51b89cp-5f, -0x1.2b9062p-5f, -0x1.0b356ap-5f,
        -0x1.c769a6p-6f, -0x1.750042p-6f, -0x1.368fdcp-6f, -0x1.064676p-6f,
        -0x1.c07e4cp-7f, -0x1.839eap-7f, -0x1.523228p-7f, -0x1.298deep-7f,
        -0x1.69c514p-3f, -0x1.69343p-3f, -0x1.6769cp-3f, -0x1.642506p-3f,
        -0x1.5f6606p-3f, -0x1.594f64p-3f, -0x1.5213ecp-3f, -0x1.49eb92p-3f,
    },
    {
        0x1.db1586p-5f, 0x1.94e8c8p-5f, 0x1.58d53ep-5f, 0x1.2612bp-5f,
        0x1.f6eb72p-6f, 0x1.af8b84p-6f, 0x1.73c404p-6f, 0x1.419d32p-6f,
        0x1.0554c2p-6f, 0x1.9137fep-7f, 0x1.3910e4p-7f, 0x1.f00b44p-8f,
        0x1.8e81a2p-8f, 0x1.44403ep-8f, 0x1.0ae862p-8f, 0x1.bc11a8p-9f,
        0x1.57bd14p-9f, 0x1.f532bcp-10f, 0x1.77dae8p-10f, 0x1.20abfep-10f,
        0x1.c490dp-11f, 0x1.690e0ap-11f, 0x1.247e2cp-11f, 0x1.e04eb8p-12f,
        0x1.8e5c8p-4f, 0x1.8485f4p-4f, 0x1.747b28p-4f, 0x1.60e05cp-4f,
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
static const float MILLS_LEADS[32] = {
    0x1.f68p-3f, 0x1.bdcp-3f, 0x1.8f6p-3f, 0x1.692p-3f,
    0x1.48ep-3f, 0x1.2dap-3f, 0x1.164p-3f, 0x1.02p-3f,
    0x1.d0ep-4f, 0x1.99ep-4f, 0x1.6e2p-4f, 0x1.4aap-4f,
    0x1.2d4p-4f, 0x1.148p-4f, 0x1.feep-5f, 0x1.daap-5f,
    0x1.adp-5f, 0x1.7cp-5f, 0x1.55p-5f, 0x1.354p-5f,
    0x1.1bp-5f, 0x0p+0f, 0x0p+0f, 0x0p+0f,
    0x1.e76p-2f, 0x1.bbap-2f, 0x1.95cp-2f, 0x1.74ep-2f,
    0x1.582p-2f, 0x1.3eep-2f, 0x1.28ap-2f, 0x1.14ep-2f,
};
static const float MILLS_SHAPES[6][32] = {
    {
        -0x1.85783ap-14f, -0x1.3daf8p-17f, 0x1.2965dep-13f, -0x1.2dfd4cp-13f,
        0x1.5bc756p-14f, -0x1.0734ap-15f, -0x1.b58e08p-15f, 0x1.30da72p-14f,
        -0x1.18b426p-13f, 0x1.78f1b8p-15f, 0x1.ee68e6p-14f, -0x1.54087cp-16f,
        -0x1.62aebcp-13f, -0x1.076e9p-14f, 0x1.03dfdcp-15f, 0x1.a53a58p-14f,
        -0x1.21bee2p-13f, 0x1.66dbecp-17f, 0x1.7f713ap-14f, 0x1.eadfa6p-14f,
        -0x1.98c208p-13f, -0x1.08ba9ep-16f, -0x1.7e49fp-14f, -0x1.2ffbd6p-14f,
        0x1.04166ep-13f, -0x1.b27be6p-14f, -0x1.232ab4p-14f, -0x1.51143ep-14f,
        0x1.aeb6b2p-17f, 0x1.e50dd6p-14f, 0x1.8192fp-14f, 0x1.f2bc1ap-14f,
    },
    {
        -0x1.00880cp-1f, -0x1.d4f66cp-2f, -0x1.aeb1cep-2f, -0x1.8d249ep-2f,
        -0x1.6fefecp-2f, -0x1.561bdcp-2f, -0x1.3f4baep-2f, -0x1.2b11ap-2f,
        -0x1.109948p-2f, -0x1.e6cdb2p-3f, -0x1.b6e44p-3f, -0x1.8ef71cp-3f,
        -0x1.6d543p-3f, -0x1.50c04cp-3f, -0x1.3823f6p-3f, -0x1.22bec8p-3f,
        -0x1.0760fap-3f, -0x1.d3c862p-4f, -0x1.a4568ep-4f, -0x1.7d61d2p-4f,
        -0x1.5cbdd4p-4f, -0x1.413fbep-4f, -0x1.299704p-4f, -0x1.151992p-4f,
        -0x1.8d26f2p-1f, -0x1.777c96p-1f, -0x1.637f1p-1f, -0x1.50f358p-1f,
        -0x1.3fcabp-1f, -0x1.2fe21ep-1f, -0x1.211698p-1f, -0x1.135e9ep-1f,
    },
    {
        0x1.bea48p-3f, 0x1.7b108ep-3f, 0x1.441fcap-3f, 0x1.17058ep-3f,
        0x1.e3f5d4p-4f, 0x1.a654aap-4f, 0x1.72e15ep-4f, 0x1.47a886p-4f,
        0x1.12c43cp-4f, 0x1.ba5a6ep-5f, 0x1.6a5668p-5f, 0x1.2d537ap-5f,
        0x1.fbf8dcp-6f, 0x1.b16386p-6f, 0x1.75a64ep-6f, 0x1.45264ap-6f,
        0x1.0be9f6p-6f, 0x1.a84946p-7f, 0x1.57c4fep-7f, 0x1.1be0a2p-7f,
        0x1.dc3d34p-8f, 0x1.9523a8p-8f, 0x1.5c9ca8p-8f, 0x1.2f0d62p-8f,
        0x1.e74336p-2f, 0x1.b98f32p-2f, 0x1.90e2p-2f, 0x1.6c8c64p-2f,
        0x1.4c1f8ap-2f, 0x1.2f21f2p-2f, 0x1.152632p-2f, 0x1.fbc306p-3f,
    },
    {
        -0x1.5d2afcp-4f, -0x1.15e088p-4f, -0x1.be65d4p-5f, -0x1.69a6e2p-5f,
        -0x1.27b986p-5f, -0x1.e78fep-6f, -0x1.953764p-6f, -0x1.536c94p-6f,
        -0x1.07a6d2p-6f, -0x1.8187f8p-7f, -0x1.20a40ap-7f, -0x1.b95606p-8f,
        -0x1.57c83ep-8f, -0x1.105af8p-8f, -0x1.b5f9acp-9f, -0x1.64d6ecp-9f,
        -0x1.0c233p-9f, -0x1.7b94d6p-10f, -0x1.15c958p-10f, -0x1.a207ccp-11f,
        -0x1.41e52ep-11f, -0x1.f9ffbcp-12f, -0x1.9481bcp-12f, -0x1.48483ap-12f,
        -0x1.fd4524p-3f, -0x1.bd7d26p-3f, -0x1.8682f8p-3f, -0x1.56f948p-3f,
        -0x1.2de014p-3f, -0x1.0a4636p-3f, -0x1.d6b8d2p-4f, -0x1.a1088ap-4f,
    },
    {
        0x1.f5b84p-6f, 0x1.78e5e6p-6f, 0x1.1e22bap-6f, 0x1.b6ce5cp-7f,
        0x1.541514p-7f, 0x1.0a1802p-7f, 0x1.a46cb2p-8f, 0x1.4f3998p-8f,
        0x1.e690dcp-9f, 0x1.44e6ap-9f, 0x1.beb35ap-10f, 0x1.3b249ep-10f,
        0x1.c72b18p-11f, 0x1.4fbc3ap-11f, 0x1.f8a47ap-12f, 0x1.81b102p-12f,
        0x1.0a03fp-12f, 0x1.512a7cp-13f, 0x1.be494ap-14f, 0x1.3243fep-14f,
        0x1.b150c2p-15f, 0x1.3ad866p-15f, 0x1.d3e712p-16f, 0x1.62a67ep-16f,
        0x1.d7d178p-4f, 0x1.902c9p-4f, 0x1.542c08p-4f, 0x1.21c57ap-4f,
        0x1.eed86ap-5f, 0x1.a787dep-5f, 0x1.6b5624p-5f, 0x1.387f7p-5f,
    },
    {
        -0x1.4e2fbep-7f, -0x1.dc7f5ep-8f, -0x1.57a392p-8f, -0x1.f51e76p-9f,
        -0x1.71b4d6p-9f, -0x1.13ac82p-9f, -0x1.9f8eacp-10f, -0x1.3c7d96p-10f,
        -0x1.adaab2p-11f, -0x1.079472p-11f, -0x1.4e6622p-12f, -0x1.b538fap-13f,
        -0x1.25c074p-13f, -0x1.94aa76p-14f, -0x1.1cfc1ap-14f, -0x1.998532p-15f,
        -0x1.02d9b4p-15f, -0x1.26cdd6p-16f, -0x1.61d8bcp-17f, -0x1.bbdeacp-18f,
        -0x1.20f18ap-18f, -0x1.84adccp-19f, -0x1.0cbcecp-19f, -0x1.7ccddap-20f,
        -0x1.8bf938p-5f, -0x1.46ac9cp-5f, -0x1.0e23p-5f, -0x1.bfc1c6p-6f,
        -0x1.740368p-6f, -0x1.35dda8p-6f, -0x1.02becp-6f, -0x1.b14e8cp-7f,
    },
};
static const float MILLS_NEAR_SHAPES[5][32] = {
    {
        0x1.fb55f2p-2f, 0x1.f6e7c6p-2f, 0x1.f0cd4ap-2f, 0x1.e92892p-2f,
        0x1.e0335ap-2f, 0x1.d6312ap-2f, 0x1.cb65dep-2f, 0x1.c01016p-2f,
        0x1.aec03cp-2f, 0x1.971e94p-2f, 0x1.801704p-2f, 0x1.6a323ap-2f,
        0x1.55b3c4p-2f, 0x1.42b326p-2f, 0x1.312ddcp-2f, 0x1.2112c4p-2f,
        0x1.0ba408p-2f, 0x1.e5373ep-3f, 0x1.bad214p-3f, 0x1.96ab64p-3f,
        0x1.7799d4p-3f, 0x1.5cb06p-3f, 0x1.453312p-3f, 0x1.308ccp-3f,
        0x1p-1f, 0x1.ffff6cp-2f, 0x1.fff978p-2f, 0x1.ffe2bp-2f,
        0x1.ffaab4p-2f, 0x1.ff3f2ap-2f, 0x1.fe8e6ap-2f, 0x1.fd8952p-2f,
    },
    {
        -0x1.7f036ep-2f, -0x1.6f114ep-2f, -0x1.5cbf4p-2f, -0x1.49133ep-2f,
        -0x1.34e652p-2f, -0x1.20dcacp-2f, -0x1.0d69bcp-2f, -0x1.f5b18ep-3f,
        -0x1.c29b62p-3f, -0x1.85a57ap-3f, -0x1.51afb6p-3f, -0x1.25cb3ep-3f,
        -0x1.00d3dap-3f, -0x1.c35a0cp-4f, -0x1.8eb488p-4f, -0x1.620a7ep-4f,
        -0x1.2ba5fcp-4f, -0x1.e63046p-5f, -0x1.911d76p-5f, -0x1.4fdcdp-5f,
        -0x1.1ce782p-5f, -0x1.e8e976p-6f, -0x1.a7c0ap-6f, -0x1.7292eap-6f,
        -0x1.988432p-2f, -0x1.9871ep-2f, -0x1.980a1ep-2f, -0x1.96fc4p-2f,
        -0x1.95076ep-2f, -0x1.92039cp-2f, -0x1.8de0fep-2f, -0x1.88a38ep-2f,
    },
    {
        0x1.8b7c0cp-3f, 0x1.6056dcp-3f, 0x1.37072cp-3f, 0x1.1102acp-3f,
        0x1.ddcc4p-4f, 0x1.a19456p-4f, 0x1.6cfbcap-4f, 0x1.3f588ep-4f,
        0x1.06c422p-4f, 0x1.9772fcp-5f, 0x1.3f7184p-5f, 0x1.facc54p-6f,
        0x1.96b8cap-6f, 0x1.4a14f8p-6f, 0x1.0ebc38p-6f, 0x1.c08adp-7f,
        0x1.58f2b2p-7f, 0x1.f21246p-8f, 0x1.71f16p-8f, 0x1.198e5ep-8f,
        0x1.b5ae3p-9f, 0x1.5a741p-9f, 0x1.16a5e8p-9f, 0x1.c68db4p-10f,
        0x1.fff0eep-3f, 0x1.fe2c72p-3f, 0x1.f8cdep-3f, 0x1.ef608p-3f,
        0x1.e2344p-3f, 0x1.d1f01ap-3f, 0x1.bf550ap-3f, 0x1.ab1ddep-3f,
    },
    {
        -0x1.fd9db8p-5f, -0x1.959a7cp-5f, -0x1.42aa5cp-5f, -0x1.01476ap-5f,
        -0x1.9beee8p-6f, -0x1.4b717ap-6f, -0x1.0c30d4p-6f, -0x1.b49dc6p-7f,
        -0x1.451ee2p-7f, -0x1.beaea4p-8f, -0x1.3a1106p-8f, -0x1.c35668p-9f,
        -0x1.4adacp-9f, -0x1.ee0706p-10f, -0x1.770c02p-10f, -0x1.2115fp-10f,
        -0x1.92aec6p-11f, -0x1.01f6bap-11f, -0x1.5845dep-12f, -0x1.db94eep-13f,
        -0x1.524ba2p-13f, -0x1.eda01ap-14f, -0x1.702518p-14f, -0x1.17e548p-14f,
        -0x1.0ef744p-3f, -0x1.04c136p-3f, -0x1.e97044p-4f, -0x1.c3b9bep-4f,
        -0x1.9c28e2p-4f, -0x1.751058p-4f, -0x1.4fcc32p-4f, -0x1.2d180ap-4f,
    },
    {
        0x1.2fcb52p-7f, 0x1.a3164cp-8f, 0x1.2600b8p-8f, 0x1.a31e12p-9f,
        0x1.2f3b62p-9f, 0x1.bcf834p-10f, 0x1.4accf2p-10f, 0x1.f1f492p-11f,
        0x1.4d07e4p-11f, 0x1.9291f8p-12f, 0x1.f91ca6p-13f, 0x1.47827ep-13f,
        0x1.b5512ep-14f, 0x1.2bac84p-14f, 0x1.a45f86p-15f, 0x1.2d0eb4p-15f,
        0x1.7b043p-16f, 0x1.ae324ap-17f, 0x1.019946p-17f, 0x1.42a9dcp-18f,
        0x1.a3d3dep-19f, 0x1.1a29ep-19f, 0x1.861b54p-20f, 0x1.145f5cp-20f,
        0x1.c78922p-5f, 0x1.69b0b4p-5f, 0x1.20cac4p-5f, 0x1.cfb162p-6f,
        0x1.763c7ep-6f, 0x1.2f9896p-6f, 0x1.ef0c06p-7f, 0x1.9593bcp-7f,
    },
};
static const float SLOPE_WIDE_LEADS[8] = {
    0x1.18ap-1f, 0x1.fdp-2f, 0x1.e2cp-2f, 0x1.d32p-2f,
    0x1.c5cp-2f, 0x1.baep-2f, 0x1.b4ap-2f, 0x1.3f8p-1f,
};
static const float SLOPE_WIDE_SHAPES[5][8] = {
    {
        0x1.1b2b3p-14f, 0x1.6342a8p-14f, -0x1.b7f4bp-14f, 0x1.685638p-15f,
        -0x1.970364p-18f, 0x1.3c1888p-16f, -0x1.78dd5p-14f, 0x1.209f1p-13f,
    },
    {
        -0x1.0cc39p+0f, -0x1.4f9c72p-1f, -0x1.d3b5f4p-2f, -0x1.5efdb4p-2f,
        -0x1.fadacap-3f, -0x1.5f6a24p-3f, -0x1.02822p-3f, -0x1.984cc6p+0f,
    },
    {
        0x1.d02df8p+0f, 0x1.d20164p-1f, 0x1.0c60fap-1f, 0x1.58bcecp-2f,
        0x1.a96acap-3f, 0x1.0dc086p-3f, 0x1.a9a3c4p-4f, 0x1.9c13e6p+1f,
    },
    {
        -0x1.0a078ap+1f, -0x1.cf5c3cp-1f, -0x1.bebcc2p-2f, -0x1.cbf3bcp-3f,
        -0x1.59829ap-4f, 0x1.c07c82p-8f, 0x1.f674ecp-5f, -0x1.f6260ap+1f,
    },
    {
        0x1.586ffap+0f, 0x1.3fe2e4p-1f, 0x1.48994p-2f, 0x1.990f3ep-3f,
        0x1.333d74p-3f, 0x1.4e2f82p-3f, 0x1.b5e40cp-3f, 0x1.168af8p+1f,
    },
};
static const float SLOPE_WIDE_NEAR_SHAPES[5][8] = {
    {
        0x1.18a2ecp-1f, 0x1.fcfc0ep-2f, 0x1.e2926ap-2f, 0x1.d2ec82p-2f,
        0x1.c559ccp-2f, 0x1.ba26fp-2f, 0x1.b36b9ep-2f, 0x1.3f8b2p-1f,
    },
    {
        -0x1.26bb9cp-1f, -0x1.4e2d8ep-2f, -0x1.bad2p-3f, -0x1.42fd7cp-3f,
        -0x1.c9f292p-4f, -0x1.3e8724p-4f, -0x1.e46a4ep-5f, -0x1.fd9b18p-1f,
    },
    {
        0x1.fc37e6p-1f, 0x1.cd334cp-2f, 0x1.f3bb0ep-3f, 0x1.317a7ap-3f,
        0x1.5dc178p-4f, 0x1.7bad72p-5f, 0x1.d834eep-6f, 0x1.010abep+1f,
    },
    {
        -0x1.24728ap+0f, -0x1.d23a6p-2f, -0x1.b5fc4p-3f, -0x1.d26528p-4f,
        -0x1.bee7b8p-5f, -0x1.85e23ap-6f, -0x1.93a15cp-7f, -0x1.39997cp+1f,
    },
    {
        0x1.7550acp-1f, 0x1.3092d8p-2f, 0x1.0e96dap-3f, 0x1.093d86p-4f,
        0x1.bebee8p-6f, 0x1.46a3p-7f, 0x1.20561ep-8f, 0x1.5a3072p+0f,
    },
};
static const float MILLS_WIDE_LEADS[16] = {
    0x1.0fp-2f, 0x1.bc6p-3f, 0x1.762p-3f, 0x1.41cp-3f,
    0x1.0b6p-3f, 0x1.acep-4f, 0x1.65p-4f, 0x1.316p-4f,
    0x1.fa2p-5f, 0x1.96ap-5f, 0x1.53cp-5f, 0x1.23cp-5f,
    0x1.ddap-2f, 0x1.9bep-2f, 0x1.67cp-2f, 0x1.3dcp-2f,
};
static const float MILLS_WIDE_SHAPES[6][16] = {
    {
        0x1.2fc2c4p-14f, -0x1.45da12p-15f, 0x1.d760bap-15f, 0x1.09a8f4p-15f,
        -0x1.98cdc6p-13f, -0x1.cff9f8p-15f, 0x1.be7942p-14f, -0x1.6913cep-20f,
        0x1.a38e28p-14f, -0x1.ac5694p-14f, -0x1.6f2824p-13f, -0x1.827d54p-14f,
        -0x1.cf8d48p-17f, 0x1.620c68p-17f, 0x1.9105b8p-14f, 0x1.930dfp-13f,
    },
    {
        -0x1.2d45f6p+0f, -0x1.3ef9bep+0f, -0x1.4a2e6cp+0f, -0x1.512b82p+0f,
        -0x1.56a40cp+0f, -0x1.59cabp+0f, -0x1.5a469p+0f, -0x1.59826ep+0f,
        -0x1.57c2a6p+0f, -0x1.54d3acp+0f, -0x1.5216bep+0f, -0x1.4fa924p+0f,
        -0x1.b4019ap-1f, -0x1.e95f2ep-1f, -0x1.09fb7ep+0f, -0x1.1afa8ap+0f,
    },
    {
        -0x1.1f247ep-2f, -0x1.7ea4dap-3f, -0x1.cafc34p-4f, -0x1.c1f372p-5f,
        0x1.f94658p-10f, 0x1.9654dep-5f, 0x1.2fce9p-4f, 0x1.610176p-4f,
        0x1.7a2584p-4f, 0x1.77412ep-4f, 0x1.65c9d2p-4f, 0x1.52055ap-4f,
        -0x1.f4f7d2p-2f, -0x1.d176e4p-2f, -0x1.a0c8b4p-2f, -0x1.6b03c2p-2f,
    },
    {
        0x1.012c06p-4f, 0x1.cabdeep-4f, 0x1.0a865cp-3f, 0x1.0c5784p-3f,
        0x1.e74dp-4f, 0x1.85d012p-4f, 0x1.2ee9ecp-4f, 0x1.d7cecap-5f,
        0x1.548ac8p-5f, 0x1.cff68ep-6f, 0x1.5fb4aep-6f, 0x1.2888fp-6f,
        -0x1.cac1f6p-3f, -0x1.19b0eap-3f, -0x1.f80dfep-5f, 0x1.0dbafap-14f,
    },
    {
        0x1.1a690ap-3f, 0x1.f54cfap-4f, 0x1.869556p-4f, 0x1.1bc1b4p-4f,
        0x1.4ed3dep-5f, 0x1.1e9fep-6f, 0x1.aec89ap-8f, 0x1.037c94p-9f,
        0x1.3a38ecp-12f, 0x1.597334p-10f, 0x1.c9330ap-9f, 0x1.8a3f6p-8f,
        -0x1.3f5cd6p-5f, 0x1.6b5dbcp-5f, 0x1.8fdd1p-4f, 0x1.027db6p-3f,
    },
    {
        0x1.a980dcp-4f, 0x1.e31e9cp-5f, 0x1.ad9158p-6f, 0x1.b5109ep-8f,
        -0x1.79e554p-8f, -0x1.1db4bap-7f, -0x1.a87e16p-8f, -0x1.d4a886p-9f,
        -0x1.a2a0d4p-14f, 0x1.c82c06p-9f, 0x1.a618ccp-8f, 0x1.33276ep-7f,
        0x1.3c3188p-4f, 0x1.06873cp-3f, 0x1.225e5p-3f, 0x1.107cf2p-3f,
    },
};
static const float MILLS_WIDE_NEAR_SHAPES[6][8] = {
    {
        0x1.0114aap-2f, 0x1.3c753ap-3f, 0x1.c0952p-4f, 0x1.590122p-4f,
        0x1.02d252p-4f, 0x1.7cc9dep-5f, 0x1.2ceafep-5f, 0x1.a2f98ap-2f,
    },
    {
        -0x1.232f2cp+0f, -0x1.2c6244p-1f, -0x1.7615d2p-2f, -0x1.0582bep-2f,
        -0x1.640c56p-3f, -0x1.ddc4e6p-4f, -0x1.632088p-4f, -0x1.150118p+1f,
    },
    {
        0x1.3c5156p+1f, 0x1.0504a2p+0f, 0x1.08551ap-1f, 0x1.33b2fep-2f,
        0x1.4f6b04p-3f, 0x1.5be45cp-4f, 0x1.a4071p-5f, 0x1.5dae9cp+2f,
    },
    {
        -0x1.c7160ep+1f, -0x1.49592p+0f, -0x1.20230ap-1f, -0x1.22da98p-2f,
        -0x1.079064p-3f, -0x1.b42d0ep-5f, -0x1.b3cfp-6f, -0x1.0a70b4p+3f,
    },
    {
        0x1.842046p+1f, 0x1.1771ccp+0f, 0x1.c79fa2p-2f, 0x1.a32974p-3f,
        0x1.4ab34p-4f, 0x1.c5edf4p-6f, 0x1.8034c8p-7f, 0x1.9d4c58p+2f,
    },
    {
        -0x1.81fc64p-1f, -0x1.d828e6p-2f, -0x1.b15018p-3f, -0x1.919afcp-4f,
        -0x1.2b1b1ap-5f, -0x1.6b586ap-7f, -0x1.0e5e82p-8f, 0x1.36f894p-2f,
    },
};

#endif
