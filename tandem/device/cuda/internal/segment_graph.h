#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "tandem/device/cuda/internal/command_list.h"

namespace tandem::cuda {

/// A list of commands as a CUDA graph, launched by one call of the driver. Parameters that differ
/// from those of the launch before are changed first, by a call each. Host memory is staged: the
/// graph copies from and to pinned memory of its own. Used by one thread, but for `deliver`.
class SegmentGraph {
 public:
  /// True for lists that may become one: short, and without copies of much host memory.
  static bool suits(const CommandList& commands);

  /// Calls of libraries are captured from `stream`. Throws Failure, with nothing left behind.
  SegmentGraph(Gpu& gpu, const CommandList& commands, CUstream stream);
  ~SegmentGraph();
  SegmentGraph(const SegmentGraph&) = delete;
  SegmentGraph& operator=(const SegmentGraph&) = delete;

  /// True if a list has these commands but for what their parameters and addresses are.
  bool fits(const CommandList& commands) const;
  /// True if they also have the parameters and addresses that the graph has now, so that nothing is
  /// changed by launching them.
  bool equals(const CommandList& commands) const;
  /// True from `launch` to `deliver`: the staging memory is in use.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  /// Runs a list that fits, while it is not busy. Throws Failure, with nothing launched; the graph
  /// is then to be dropped.
  void launch(const CommandList& commands, CUstream stream);
  /// Once what was launched is over: copies results to the host memory that they are for.
  void deliver(bool succeeded);

 private:
  struct Node {
    CUgraphNode handle = nullptr;
    std::size_t staged_at = 0;  // in the staging memory
  };
  void stage();
  void add(std::size_t i, CUstream stream);
  void add_library_call(std::size_t i, const CUgraphNode* after, std::size_t count,
                        CUstream stream);
  bool equals(std::size_t i, const CommandList& next) const;
  void update(std::size_t i, const CommandList& next, CUstream stream);
  CUDA_KERNEL_NODE_PARAMS kernel_of(const CommandList& commands, const Command& c,
                                    std::vector<void*>& values) const;
  CUDA_MEMCPY3D copy_of(std::size_t i, const Command& c) const;
  static CUDA_MEMSET_NODE_PARAMS set_of(const Command& c);
  void destroy();

  Gpu& gpu_;
  CommandList commands_;  // as the graph has them
  std::vector<Node> nodes_;
  CUgraph graph_ = nullptr;
  CUgraphExec made_ = nullptr;
  std::byte* staging_ = nullptr;
  struct Delivery {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Delivery> deliveries_;  // of the last launch
  std::atomic<bool> busy_{false};
};

}  // namespace tandem::cuda
