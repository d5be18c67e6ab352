#pragma once

#include <cstdint>
#include <memory>

#include "tandem/data/dataset_base.h"
#include "tandem/data/sources/draws.h"

namespace tandem::data {

/// Calls `fn` on the elements of `input` on `calls` threads (kAutotune: as many as the iteration's
/// tuner says, or the consumer itself, where elements take less than handing them over), which
/// begin with the first `next`.
/// Holds at most twice as many elements as it has threads. An error of `fn` says that it was in
/// `stage`, and which element's it was; null: `fn` says so itself. `draws` is of a pass of `fn`.
std::unique_ptr<IteratorBase> make_parallel_map(const DatasetBase& input, const ElementFn& fn,
                                                std::int64_t calls, bool deterministic,
                                                const IterationContext& context,
                                                DrawPass draws = {}, const char* stage = "map");

}  // namespace tandem::data
