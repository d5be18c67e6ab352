#pragma once

#include <cstdint>
#include <string>

#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/cuda/support/number.h"

namespace tandem::cuda {

template <class T>
struct Tag {
  using type = T;
};

/// Calls `f(Tag<T>())` for the C++ type of a floating type. False if it is none.
template <class F>
bool visit_floating(Type type, F&& f) {
  switch (type) {
    case Type::kFloat: f(Tag<float>()); return true;
    case Type::kDouble: f(Tag<double>()); return true;
    case Type::kHalf: f(Tag<Half>()); return true;
    case Type::kBFloat16: f(Tag<BFloat16>()); return true;
    default: return false;
  }
}

inline bool is_floating(Type type) {
  return visit_floating(type, [](auto) {});
}

template <class F>
bool visit_integers(Type type, F&& f) {
  switch (type) {
    case Type::kInt8: f(Tag<std::int8_t>()); return true;
    case Type::kInt16: f(Tag<std::int16_t>()); return true;
    case Type::kInt32: f(Tag<std::int32_t>()); return true;
    case Type::kInt64: f(Tag<std::int64_t>()); return true;
    case Type::kUint8: f(Tag<std::uint8_t>()); return true;
    case Type::kUint16: f(Tag<std::uint16_t>()); return true;
    case Type::kUint32: f(Tag<std::uint32_t>()); return true;
    case Type::kUint64: f(Tag<std::uint64_t>()); return true;
    default: return false;
  }
}

/// Floating types and integers.
template <class F>
bool visit_numbers(Type type, F&& f) {
  return visit_floating(type, f) || visit_integers(type, f);
}

/// Floating types, integers and bool.
template <class F>
bool visit_all(Type type, F&& f) {
  if (type == Type::kBool) {
    f(Tag<bool>());
    return true;
  }
  return visit_numbers(type, f);
}

[[noreturn]] inline void no_kernel_for(Type type) {
  not_on_gpu("there is no CUDA kernel for dtype number " +
             std::to_string(static_cast<std::int32_t>(type)));
}

inline std::size_t size_of(Type type) {
  switch (type) {
    case Type::kBool:
    case Type::kInt8:
    case Type::kUint8: return 1;
    case Type::kHalf:
    case Type::kBFloat16:
    case Type::kInt16:
    case Type::kUint16: return 2;
    case Type::kFloat:
    case Type::kInt32:
    case Type::kUint32: return 4;
    case Type::kDouble:
    case Type::kInt64:
    case Type::kUint64: return 8;
  }
  no_kernel_for(type);
}

/// Calls `f(Tag<U>())` with an unsigned type of the element's size, for kernels that only move.
template <class F>
void visit_size(Type type, F&& f) {
  switch (size_of(type)) {
    case 1: f(Tag<std::uint8_t>()); return;
    case 2: f(Tag<std::uint16_t>()); return;
    case 4: f(Tag<std::uint32_t>()); return;
    default: f(Tag<std::uint64_t>()); return;
  }
}

/// Calls `f(Tag<Index>())` for int32 and int64, of which indices are.
template <class F>
void visit_index(Type type, F&& f) {
  if (type == Type::kInt32) return f(Tag<std::int32_t>());
  if (type == Type::kInt64) return f(Tag<std::int64_t>());
  no_kernel_for(type);
}

}  // namespace tandem::cuda
