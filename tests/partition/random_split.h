#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tandem/runtime/partition/partition.h"

namespace tandem::partition_test {

/// Which variables and other resources some node of a graph uses together, in any of its
/// signatures: they share a device.
class SharedOwners {
 public:
  void add(const MutableFunction& signature);
  /// One of those that share a device with `key`.
  const std::string& root(const std::string& key) const;

 private:
  std::map<std::string, std::string> parent_;
};

/// A random device for every node, alike in all signatures of a graph that are assigned with one
/// seed. What shares a resource or a reference shares a device, as the placer would have it.
AssignedGraph assign_at_random(MutableFunction function, const SharedOwners& owners,
                               std::vector<PartitionDevice> devices, std::uint64_t seed);

/// What the node that `add_fault` puts in does when it runs.
enum class Fault { kNone, kThrow, kCancel };

/// Arms the faults of this process, for the run that follows. `cancel` is called by kCancel.
void arm(Fault fault, void (*cancel)());
/// Whether an armed node has run.
bool fault_fired();
inline constexpr const char* kFaultText = "the injected fault";

/// Puts a node on a random edge of the graph, on a random device, that passes the value on and does
/// what `arm` says. False if the graph has no edge for it.
bool add_fault(AssignedGraph& graph, const OpRegistry& ops, std::mt19937_64& random);

}  // namespace tandem::partition_test
