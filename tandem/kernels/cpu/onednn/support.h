#pragma once

namespace tandem::cpu::onednn {

/// The processor multiplies bfloat16 itself, so it pays not to convert to float.
bool has_native_bfloat16();

}  // namespace tandem::cpu::onednn
