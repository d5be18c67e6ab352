#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/library_call.h"
#include "tandem/device/cuda/internal/memory_use.h"

namespace tandem::cuda {

/// Something for a GPU to do: a launch of a kernel, a call of a library, or a transfer.
struct Command {
  enum class Kind : std::uint8_t { kKernel, kLibrary, kSet, kCopy, kToGpu, kToHost };
  Kind kind = Kind::kKernel;
  std::uint32_t node = 0;  ///< where the name of the graph's node begins in the list's texts

  // Kernels and libraries.
  const char* name = nullptr;  ///< in the source
  std::shared_ptr<const LibraryCall> library;
  CUfunction function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::uint32_t first_parameter = 0;
  std::uint32_t num_parameters = 0;

  // Transfers and sets, which set bytes to zero.
  CUdeviceptr to = 0, from = 0;
  void* host_to = nullptr;
  const void* host_from = nullptr;
  std::size_t bytes = 0;

  bool has_parameters() const { return kind == Kind::kKernel || kind == Kind::kLibrary; }
  /// Whether another one does the same, but for what parameters and addresses are.
  bool is_like(const Command& other) const;
};

/// Commands in the order of a stream, with copies of the kernels' parameters: what a piece of work
/// does before the driver is called for it.
class CommandList {
 public:
  /// The name of the graph's node that the commands added from now on belong to; read until the
  /// next call.
  void set_node(const char* name);
  /// A kernel, or a call of a library.
  void add_kernel(const Command& kernel, const void* const* parameters, const std::size_t* sizes,
                  std::size_t count);
  void add(Command transfer);
  void clear();
  /// Null if there is none.
  Command* last() { return commands_.empty() ? nullptr : &commands_.back(); }
  /// Removes the last command, which must be a kernel.
  void remove_last_kernel();
  /// All that the last command reads and writes, if that is known: what add_uses_of_last was given
  /// since it was added.
  std::span<const MemoryUse> uses_of_last() const { return uses_of_last_; }
  void add_uses_of_last(std::span<const MemoryUse> uses);

  bool empty() const { return commands_.empty(); }
  std::size_t size() const { return commands_.size(); }
  const Command& operator[](std::size_t i) const { return commands_[i]; }
  /// Where the parameters of a kernel lie; valid until the list changes.
  std::vector<void*> parameters(const Command& kernel) const;
  bool equal_parameters(const Command& kernel, const CommandList& others,
                        const Command& other) const;

  /// Issues a command to a stream; once more where the driver lacked memory for it. Throws Failure,
  /// naming command and node.
  void issue(std::size_t i, Gpu& gpu, CUstream stream) const;
  /// A call of a library as a graph of the driver's, which the caller destroys: what it issues to
  /// the stream is captured instead of run. Throws Failure.
  CUgraph capture(std::size_t i, Gpu& gpu, CUstream stream) const;
  /// "a launch of add_kernel for node 'x'".
  std::string describe(std::size_t i) const;

 private:
  std::uint32_t node();
  void issue_once(std::size_t i, Gpu& gpu, CUstream stream) const;
  void call_library(std::size_t i, Gpu& gpu, CUstream stream) const;
  struct Parameter {
    std::uint32_t offset, bytes;
  };
  std::vector<Command> commands_;
  std::vector<Parameter> parameters_;
  std::vector<std::byte> values_;
  std::vector<MemoryUse> uses_of_last_;
  std::string texts_{'\0'};
  const char* node_name_ = "";
  std::uint32_t node_ = 0;  // where the texts have it; 0: not yet
};

}  // namespace tandem::cuda
