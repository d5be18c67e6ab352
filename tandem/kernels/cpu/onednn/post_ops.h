#pragma once

#include <cstdint>

#include "tandem/kernels/cpu/conv/epilogue.h"
#include "tandem/kernels/cpu/onednn/library.h"

namespace tandem::cpu::onednn {

/// The attributes of a primitive that ends with an epilogue. The addend is expected in the result's
/// memory; the bias is an argument of its own.
dnnl::primitive_attr epilogue_attr(const Epilogue& e);

/// What a Key must hold of an epilogue.
std::int64_t epilogue_kind(const Epilogue& e);
std::int64_t bits_of(float value);

}  // namespace tandem::cpu::onednn
