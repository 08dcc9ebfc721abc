/** An RSA key of the vectors. It protects nothing. */
export const RSA_JWK = {
  kty: "RSA",
  n: [
    "xT0ZT6KJoz8dvXMUrhCOMPvhDNzkW5xorYSxgECIahnovxctgIrsS8R71do4siP-vkTzbqG-TBP8izSU8U77ZIP25ETcq_G9QRy4KgeT2OLo1Z",
    "6wnFcBsElblQ3ksKURfOUP5yAkM06nQ2uJ2GoiKh6tO_C1ObUPyOZPcasKO87dvYmGU6jOXSpQphmyt7vZnIRHzaz1zwVwpAYiL5uZ3jaicH2g",
    "yQt7L1ESlDbrZoFXQzpzqPlmfeQqVfbCL8ncRpZBo3JYmImy3TcAJyXfweRvsFbNKmjKVnOTOhB-D1hR86DhUtjvXlZL2gxmWBdVzRvXnEuZGz",
    "1PFKCqqqZ06Q",
  ].join(""),
  e: "AQAB",
  d: [
    "BUVKzsLgQufPkr3BBzfAPPt2IGkrHW5lqhr6JujsKRdHjdezBEgLsXVu_VN6bi3VEF7FhibPVlDqAwqxxWyfyvTvafRguz2KzT_uhSNnsx65K-",
    "aa_8qGOO106fV3_E2k7n2TU7dOdr260-vk2c7x2izj4mhElExMDC_PXqrvhPj7RENwaws8iI01gESxccQTTUywTMUW-qQJb3tZjvvWmulzK9IV",
    "_3dlDh3-yx70zBPkSw8QEVaeg25R13faxq6YEuQdLcRXeQfo8HgJ9BsR_L5ZTtqx_Bwn_Mm6kvuedOGtI6YJNwm7S5waD5lY4XKlyqmZimSJDA",
    "tlvp6eVR3lMw",
  ].join(""),
  p: [
    "7_gFQMZeaVSq3nKUE0xYwQtXjEgjYL3QOi4W7KXDG9yTUS1XwwsDw7pPMSFKQl8NaMq5A94T1ZnPC4XAsTE44JyrMxVFOq4tnWT7HTaHfDTdxL",
    "iquXZ3D9MFbJdC-CByTcKtDu89z1kvM_WJolr_vDdVzU9zZzrgsN9clS8J1Zc",
  ].join(""),
  q: [
    "0mpNIukRNqcm_JNqPezh7IcPhsH7shQzwSLdNXXg2uyB3-RBiOh3aEznUZf5HKZ3SIIo5LC0JootwVW3HqRZpZjJu54E0xskO-NbEBKo7eQRud",
    "VOMkDPJLgf7-QSaSLf0L9zEwhMAlcSHwakWG6nLxfyEX5BgneAn33vnXscWX8",
  ].join(""),
  dp: [
    "RoLRQFRJf5fCUXTHb9g6KBcmFXFI--8qVT4fvE-EwhYRL4QsSoJdC9Ed3ejTQidd8FHJBYrmtxfnz5HwqeA1v0Ipx-vTGMf_XUVDyDSyoNuD4n",
    "8Eo1Rc7chqypqzsecOzyyJ316LAfdJuHHIjG1CwdJcouRam5WgWjh3otpcgGc",
  ].join(""),
  dq: [
    "lex4Ga_HPBHNjZnb0VO_hjCVt4bwN-p9FdgplbXwCQ0LXOPebhZ1PjPNfi2yqd9Sjq9vQ8NEGVHLWD4ixAqGdZ9v3eaxuVlVb_aHI-SnyRkAKF",
    "D77oKPFbK7zsnK9G6M2sgOzjjTL7eqicDJyNjO9pcxO5WiR7uuQfYRjTvy7zE",
  ].join(""),
  qi: [
    "n_yiCIMO-OmEIfohIWTJlEiP3jbKnBGSPYzOhRXzl3rdDUeWgtZ833Xp0oGon9patjZTqCsHCpaCvxhecl3_6cIiPv1ps3_zt50C_WsVALhrOm",
    "ZbuQdR-zGQLKer6BsI48gY-QqAEnMNQMwQPtv7V0w8ZgycRxPDaFIpxWgEhJY",
  ].join(""),
} as const;
