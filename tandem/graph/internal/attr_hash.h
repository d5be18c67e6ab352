#pragma once

#include <cstddef>

namespace tandem {
class AttrMap;
class Array;
}  // namespace tandem

namespace tandem::passes {

/// Equal maps have equal hashes, whatever the order of their entries. Functions and tensors do not
/// count.
std::size_t hash_of(const AttrMap& attrs);

/// The hash of all bytes of a plain value, or all strings of a value of strings; 0 for other
/// objects.
std::size_t hash_of(const Array& value);

}  // namespace tandem::passes
