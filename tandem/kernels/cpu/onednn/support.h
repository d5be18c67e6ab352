#pragma once

#include <string>

namespace tandem::cpu::onednn {

/// The processor multiplies bfloat16 itself, so it may pay not to convert to float.
bool has_native_bfloat16();

/// The library's version and the instruction set that it uses: "oneDNN 2.6.3 isa 231".
std::string library_name();

}  // namespace tandem::cpu::onednn
