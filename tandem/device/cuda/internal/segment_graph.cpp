#include "tandem/device/cuda/internal/segment_graph.h"

#include <algorithm>
#include <cstring>

#include "tandem/device/cuda/internal/room.h"

namespace tandem::cuda {
namespace {

// A launch of a graph costs the host some microseconds, however long it is; a longer list keeps the
// GPU busy from its first launches on, while its last ones are still to be made.
constexpr std::size_t kMaxCommands = 1024;
constexpr std::size_t kMaxStaged = std::size_t{1} << 20;
constexpr std::size_t kStagedAlignment = 256;

bool is_staged(const Command& c) {
  return c.kind == Command::Kind::kToGpu || c.kind == Command::Kind::kToHost;
}

}  // namespace

bool SegmentGraph::suits(const CommandList& commands) {
  std::size_t staged = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (is_staged(commands[i])) staged += commands[i].bytes + kStagedAlignment;
  }
  return commands.size() <= kMaxCommands && staged <= kMaxStaged;
}

SegmentGraph::SegmentGraph(Gpu& gpu, const CommandList& commands, CUstream stream)
    : gpu_(gpu), commands_(commands), nodes_(commands.size()) {
  try {
    stage();
    gpu_.check(driver().p_cuGraphCreate(&graph_, 0), "cuGraphCreate");
    for (std::size_t i = 0; i < nodes_.size(); ++i) add(i, stream);
    with_room([&] {
      gpu_.check(driver().p_cuGraphInstantiateWithFlags(&made_, graph_, 0),
                 "cuGraphInstantiateWithFlags");
    });
  } catch (...) {
    destroy();
    throw;
  }
}

SegmentGraph::~SegmentGraph() { destroy(); }

void SegmentGraph::destroy() {
  if (made_) driver().p_cuGraphExecDestroy(made_);
  if (graph_) driver().p_cuGraphDestroy(graph_);
  if (staging_) driver().p_cuMemFreeHost(staging_);
}

void SegmentGraph::stage() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!is_staged(commands_[i])) continue;
    nodes_[i].staged_at = bytes;
    bytes += (commands_[i].bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
  }
  if (bytes == 0) return;
  void* memory = nullptr;
  gpu_.check(driver().p_cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
  staging_ = static_cast<std::byte*>(memory);
}

CUDA_KERNEL_NODE_PARAMS SegmentGraph::kernel_of(const CommandList& commands, const Command& c,
                                                std::vector<void*>& values) const {
  values = commands.parameters(c);
  CUDA_KERNEL_NODE_PARAMS p = {};
  p.func = c.function;
  p.gridDimX = c.grid[0];
  p.gridDimY = c.grid[1];
  p.gridDimZ = c.grid[2];
  p.blockDimX = c.block[0];
  p.blockDimY = c.block[1];
  p.blockDimZ = c.block[2];
  p.sharedMemBytes = c.shared_bytes;
  p.kernelParams = values.data();
  return p;
}

CUDA_MEMCPY3D SegmentGraph::copy_of(std::size_t i, const Command& c) const {
  CUDA_MEMCPY3D p = {};
  const bool from_host = c.kind == Command::Kind::kToGpu,
             to_host = c.kind == Command::Kind::kToHost;
  p.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (from_host) p.srcHost = staging_ + nodes_[i].staged_at;
  if (!from_host) p.srcDevice = c.from;
  p.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (to_host) p.dstHost = staging_ + nodes_[i].staged_at;
  if (!to_host) p.dstDevice = c.to;
  p.WidthInBytes = c.bytes;
  p.Height = 1;
  p.Depth = 1;
  return p;
}

CUDA_MEMSET_NODE_PARAMS SegmentGraph::set_of(const Command& c) {
  return {.dst = c.to, .pitch = 0, .value = 0, .elementSize = 1, .width = c.bytes, .height = 1};
}

void SegmentGraph::add_library_call(std::size_t i, const CUgraphNode* after, std::size_t count,
                                    CUstream stream) {
  const CUgraph child = commands_.capture(i, gpu_, stream);
  const CUresult result =
      driver().p_cuGraphAddChildGraphNode(&nodes_[i].handle, graph_, after, count, child);
  driver().p_cuGraphDestroy(child);  // the node has a copy
  gpu_.check(result, "cuGraphAddChildGraphNode");
}

void SegmentGraph::add(std::size_t i, CUstream stream) {
  const Command& c = commands_[i];
  const CUgraphNode* after = i == 0 ? nullptr : &nodes_[i - 1].handle;
  const std::size_t count = i == 0 ? 0 : 1;
  CUgraphNode* node = &nodes_[i].handle;
  const Driver& d = driver();
  if (c.kind == Command::Kind::kKernel) {
    std::vector<void*> values;
    const CUDA_KERNEL_NODE_PARAMS p = kernel_of(commands_, c, values);
    gpu_.check(d.p_cuGraphAddKernelNode(node, graph_, after, count, &p), "cuGraphAddKernelNode");
  } else if (c.kind == Command::Kind::kLibrary) {
    add_library_call(i, after, count, stream);
  } else if (c.kind == Command::Kind::kSet) {
    const CUDA_MEMSET_NODE_PARAMS p = set_of(c);
    gpu_.check(d.p_cuGraphAddMemsetNode(node, graph_, after, count, &p, gpu_.context()),
               "cuGraphAddMemsetNode");
  } else {
    const CUDA_MEMCPY3D p = copy_of(i, c);
    gpu_.check(d.p_cuGraphAddMemcpyNode(node, graph_, after, count, &p, gpu_.context()),
               "cuGraphAddMemcpyNode");
  }
}

bool SegmentGraph::fits(const CommandList& commands) const {
  if (commands.size() != commands_.size()) return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!commands_[i].is_like(commands[i])) return false;
  }
  return true;
}

bool SegmentGraph::equals(std::size_t i, const CommandList& next) const {
  const Command& old = commands_[i];
  const Command& c = next[i];
  if (!c.has_parameters()) return c.to == old.to && c.from == old.from;
  return std::equal(c.grid, c.grid + 3, old.grid) && std::equal(c.block, c.block + 3, old.block) &&
         c.shared_bytes == old.shared_bytes && next.equal_parameters(c, commands_, old);
}

bool SegmentGraph::equals(const CommandList& commands) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!equals(i, commands)) return false;
  }
  return true;
}

void SegmentGraph::update(std::size_t i, const CommandList& next, CUstream stream) {
  if (equals(i, next)) return;
  const Command& c = next[i];
  const Driver& d = driver();
  if (c.kind == Command::Kind::kKernel) {
    std::vector<void*> values;
    const CUDA_KERNEL_NODE_PARAMS p = kernel_of(next, c, values);
    gpu_.check(d.p_cuGraphExecKernelNodeSetParams(made_, nodes_[i].handle, &p),
               "cuGraphExecKernelNodeSetParams");
  } else if (c.kind == Command::Kind::kLibrary) {
    const CUgraph child = next.capture(i, gpu_, stream);
    const CUresult result = d.p_cuGraphExecChildGraphNodeSetParams(made_, nodes_[i].handle, child);
    d.p_cuGraphDestroy(child);
    gpu_.check(result, "cuGraphExecChildGraphNodeSetParams");
  } else if (c.kind == Command::Kind::kSet) {
    const CUDA_MEMSET_NODE_PARAMS p = set_of(c);
    gpu_.check(d.p_cuGraphExecMemsetNodeSetParams(made_, nodes_[i].handle, &p, gpu_.context()),
               "cuGraphExecMemsetNodeSetParams");
  } else {
    const CUDA_MEMCPY3D p = copy_of(i, c);
    gpu_.check(d.p_cuGraphExecMemcpyNodeSetParams(made_, nodes_[i].handle, &p, gpu_.context()),
               "cuGraphExecMemcpyNodeSetParams");
  }
}

void SegmentGraph::launch(const CommandList& commands, CUstream stream) {
  deliveries_.clear();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Command& c = commands[i];
    update(i, commands, stream);
    std::byte* const staged = staging_ + nodes_[i].staged_at;
    if (c.kind == Command::Kind::kToGpu) std::memcpy(staged, c.host_from, c.bytes);
    if (c.kind == Command::Kind::kToHost) deliveries_.push_back({c.host_to, staged, c.bytes});
  }
  commands_ = commands;
  with_room([&] { gpu_.check(driver().p_cuGraphLaunch(made_, stream), "cuGraphLaunch"); });
  busy_.store(true, std::memory_order_release);
}

void SegmentGraph::deliver(bool succeeded) {
  if (succeeded) {
    for (const Delivery& d : deliveries_) std::memcpy(d.to, d.from, d.bytes);
  }
  busy_.store(false, std::memory_order_release);
}

}  // namespace tandem::cuda
