#pragma once

#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/collectives.h"

namespace tandem {

/// What a group does.
struct CollectiveWork {
  enum Kind { kReduce, kScatter, kGather, kBroadcast } kind = kReduce;
  Collectives::Reduction reduction = Collectives::Reduction::kSum;  ///< of the first two
  bool operator==(const CollectiveWork&) const = default;
};

/// A member of a complete group.
struct CollectiveMember {
  Array input;               ///< in host memory or on `memory`; not valid where there is none
  Device* memory = nullptr;  ///< where the result is to lie; null: in the host's memory
  Collectives::Done done;
};

/// The rank of a broadcast's source. Throws InvalidArgumentError unless there is one.
int source_of(const std::vector<CollectiveMember>& members);

/// The shape of each member's result. Throws InvalidArgumentError, or UnimplementedError, where the
/// inputs do not go together.
Shape check_collective(const CollectiveWork& work, const std::vector<CollectiveMember>& members);

/// The members' results, in memory of their own, of inputs in host memory that have passed
/// `check_collective`, which gave their shape. Members may share theirs.
std::vector<Array> compute_collective(const CollectiveWork& work, const std::vector<Array>& inputs,
                                      const Shape& shape);

/// Does the work of members in order of rank, and calls each `done` once, perhaps before it
/// returns. Throws nothing.
void run_collective(const CollectiveWork& work, std::vector<CollectiveMember> members) noexcept;

}  // namespace tandem
