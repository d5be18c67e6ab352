#pragma once

#include <cstdint>

// Only the standard library is used, since kernels of some devices do not link libtandem.

namespace tandem {

/// A number for each axis of an attention, by the letters of _FusedAttention's attribute `axes`:
/// batches B and N, queries T, keys S, D what a query and a key are multiplied along, E a value's
/// elements. Such as strides, elements between neighbours, 0 where there is only one.
struct AttentionPerAxis {
  std::int64_t b = 0, n = 0, t = 0, s = 0, d = 0, e = 0;

  std::int64_t& of(char letter) {
    switch (letter) {
      case 'B': return b;
      case 'N': return n;
      case 'T': return t;
      case 'S': return s;
      case 'D': return d;
      default: return e;
    }
  }
};

}  // namespace tandem
