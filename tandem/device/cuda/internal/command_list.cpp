#include "tandem/device/cuda/internal/command_list.h"

#include <cstring>

#include "tandem/device/cuda/internal/room.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kAlignment = 16;

const char* text_of(Command::Kind kind) {
  switch (kind) {
    case Command::Kind::kSet: return "a setting of memory";
    case Command::Kind::kCopy: return "a copy on the GPU";
    case Command::Kind::kToGpu: return "a copy to the GPU";
    case Command::Kind::kToHost: return "a copy from the GPU";
    case Command::Kind::kLibrary: return "a call";
    case Command::Kind::kKernel: break;
  }
  return "a launch";
}

}  // namespace

bool Command::is_like(const Command& other) const {
  return kind == other.kind && function == other.function && library == other.library &&
         num_parameters == other.num_parameters && bytes == other.bytes;
}

void CommandList::set_node(const char* name) {
  node_name_ = name;
  node_ = 0;
}

std::uint32_t CommandList::node() {
  if (node_ == 0 && *node_name_ != '\0') {
    node_ = static_cast<std::uint32_t>(texts_.size());
    texts_.append(node_name_, std::strlen(node_name_) + 1);
  }
  return node_;
}

void CommandList::add_kernel(const Command& kernel, const void* const* parameters,
                             const std::size_t* sizes, std::size_t count) {
  uses_of_last_.clear();
  commands_.push_back(kernel);
  Command& added = commands_.back();
  added.node = node();
  added.first_parameter = static_cast<std::uint32_t>(parameters_.size());
  added.num_parameters = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t offset = (values_.size() + kAlignment - 1) / kAlignment * kAlignment;
    values_.resize(offset + sizes[i]);
    std::memcpy(values_.data() + offset, parameters[i], sizes[i]);
    parameters_.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(sizes[i])});
  }
}

void CommandList::add(Command transfer) {
  uses_of_last_.clear();
  transfer.node = node();
  commands_.push_back(transfer);
}

void CommandList::remove_last_kernel() {
  const std::uint32_t first = commands_.back().first_parameter;
  if (first < parameters_.size()) values_.resize(parameters_[first].offset);
  parameters_.resize(first);
  commands_.pop_back();
  uses_of_last_.clear();
}

void CommandList::add_uses_of_last(std::span<const MemoryUse> uses) {
  if (!commands_.empty()) uses_of_last_.insert(uses_of_last_.end(), uses.begin(), uses.end());
}

void CommandList::clear() {
  commands_.clear();
  parameters_.clear();
  values_.clear();
  uses_of_last_.clear();
  texts_.assign(1, '\0');
  node_ = 0;
}

std::vector<void*> CommandList::parameters(const Command& kernel) const {
  std::vector<void*> pointers;
  pointers.reserve(kernel.num_parameters);
  for (std::uint32_t i = 0; i < kernel.num_parameters; ++i) {
    const Parameter& p = parameters_[kernel.first_parameter + i];
    pointers.push_back(const_cast<std::byte*>(values_.data()) + p.offset);
  }
  return pointers;
}

bool CommandList::equal_parameters(const Command& kernel, const CommandList& others,
                                   const Command& other) const {
  if (kernel.num_parameters != other.num_parameters) return false;
  for (std::uint32_t i = 0; i < kernel.num_parameters; ++i) {
    const Parameter& p = parameters_[kernel.first_parameter + i];
    const Parameter& q = others.parameters_[other.first_parameter + i];
    if (p.bytes != q.bytes ||
        std::memcmp(values_.data() + p.offset, others.values_.data() + q.offset, p.bytes) != 0)
      return false;
  }
  return true;
}

void CommandList::issue(std::size_t i, Gpu& gpu, CUstream stream) const {
  with_room([&] { issue_once(i, gpu, stream); });
}

void CommandList::issue_once(std::size_t i, Gpu& gpu, CUstream stream) const {
  const Command& c = commands_[i];
  const Driver& d = driver();
  CUresult result = CUDA_SUCCESS;
  switch (c.kind) {
    case Command::Kind::kKernel: {
      std::vector<void*> values = parameters(c);
      result =
          d.p_cuLaunchKernel(c.function, c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1],
                             c.block[2], c.shared_bytes, stream, values.data(), nullptr);
      break;
    }
    case Command::Kind::kLibrary: return call_library(i, gpu, stream);
    case Command::Kind::kSet: result = d.p_cuMemsetD8Async(c.to, 0, c.bytes, stream); break;
    case Command::Kind::kCopy: result = d.p_cuMemcpyDtoDAsync(c.to, c.from, c.bytes, stream); break;
    case Command::Kind::kToGpu:
      result = d.p_cuMemcpyHtoDAsync(c.to, c.host_from, c.bytes, stream);
      break;
    case Command::Kind::kToHost:
      result = d.p_cuMemcpyDtoHAsync(c.host_to, c.from, c.bytes, stream);
      break;
  }
  if (result != CUDA_SUCCESS) gpu.check(result, describe(i).c_str());
}

// A library's own error does not say whether the GPU is lost by it; the driver's does.
void CommandList::call_library(std::size_t i, Gpu& gpu, CUstream stream) const {
  try {
    commands_[i].library->issue(stream, parameters(commands_[i]).data());
  } catch (const Failure& failure) {
    const std::string text = describe(i);
    gpu.check(driver().p_cuStreamSynchronize(stream), text.c_str());
    throw Failure(failure.code(), text + " fails: " + failure.what());
  }
}

CUgraph CommandList::capture(std::size_t i, Gpu& gpu, CUstream stream) const {
  const Driver& d = driver();
  gpu.check(d.p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cuStreamBeginCapture");
  CUgraph graph = nullptr;
  try {
    commands_[i].library->issue(stream, parameters(commands_[i]).data());
  } catch (...) {
    const CUresult result = d.p_cuStreamEndCapture(stream, &graph);
    if (result == CUDA_SUCCESS && graph) d.p_cuGraphDestroy(graph);
    if (is_fatal(result)) gpu.check(result, "cuStreamEndCapture");
    throw;
  }
  gpu.check(d.p_cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

std::string CommandList::describe(std::size_t i) const {
  const Command& c = commands_[i];
  std::string text = text_of(c.kind);
  if (c.name) text += std::string(" of ") + c.name;
  const char* node = texts_.c_str() + c.node;
  if (*node != '\0') text += std::string(" for node '") + node + "'";
  return text;
}

}  // namespace tandem::cuda
