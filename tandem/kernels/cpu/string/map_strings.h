#pragma once

#include <cstdint>
#include <string>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// output[i] = f(input[i]) for the strings of input 0; Out is the element type of output 0.
template <class Out, class F>
void map_strings(KernelContext& c, double cost, F f) {
  const Array& in = c.input(0);
  Array& out = c.allocate_output(0, in.shape());
  const std::string* from = in.data<std::string>();
  Out* to = out.data<Out>();
  c.intra_op().parallel_for(in.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
}

/// ASCII's white space, whatever the locale.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// True for the bytes that continue a character of UTF-8.
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace tandem::cpu
