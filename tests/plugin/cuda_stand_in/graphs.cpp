// Graphs: made node by node, or captured from a stream.

#include "tests/plugin/cuda_stand_in/graphs.h"

#include <utility>

#include "tests/plugin/cuda_stand_in/contexts.h"
#include "tests/plugin/cuda_stand_in/launch.h"
#include "tests/plugin/cuda_stand_in/memory.h"
#include "tests/plugin/cuda_stand_in/streams.h"
#include "tests/plugin/cuda_stand_in/transfers.h"

using namespace stand_in;

namespace {

Launch launch_of(const CUDA_KERNEL_NODE_PARAMS& p) {
  const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const unsigned block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  return {p.func, grid, block, p.sharedMemBytes, p.kernelParams};
}

std::function<void()> work_of(const CUDA_MEMCPY3D& p) {
  void* to = p.dstMemoryType == CU_MEMORYTYPE_HOST ? p.dstHost : host(p.dstDevice);
  const void* from = p.srcMemoryType == CU_MEMORYTYPE_HOST ? p.srcHost : host(p.srcDevice);
  const auto kind = p.dstMemoryType == CU_MEMORYTYPE_HOST   ? StandInActivity::kToHost
                    : p.srcMemoryType == CU_MEMORYTYPE_HOST ? StandInActivity::kToGpu
                                                            : StandInActivity::kCopy;
  return [kind, to, from, bytes = p.WidthInBytes] { transfer(kind, to, from, bytes); };
}

bool valid(const CUDA_MEMCPY3D& p) {
  return p.Height == 1 && p.Depth == 1 &&
         (p.dstMemoryType == CU_MEMORYTYPE_HOST || known(p.dstDevice, p.WidthInBytes)) &&
         (p.srcMemoryType == CU_MEMORYTYPE_HOST || known(p.srcDevice, p.WidthInBytes));
}

std::function<void()> work_of(const CUDA_MEMSET_NODE_PARAMS& p) {
  return [p] { fill(host(p.dst), static_cast<unsigned char>(p.value), p.width); };
}

// All that a captured graph does.
std::function<void()> work_of(CUgraph graph) {
  return [all = graph->work] {
    for (const auto& work : all) work();
  };
}

// Nodes here come one after the other, as all graphs of Tandem's do.
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  std::function<void()> work) {
  const std::size_t number = graph->nodes.size();
  if (count != (number == 0 ? 0 : 1) || (count == 1 && after[0]->number + 1 != number))
    return CUDA_ERROR_NOT_SUPPORTED;
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  graph->nodes.back()->number = number;
  graph->work.push_back(std::move(work));
  *node = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

STAND_IN cuGraphCreate(CUgraph* graph, unsigned) {
  ENTER();
  *graph = new CUgraph_st;
  return CUDA_SUCCESS;
}
STAND_IN cuGraphDestroy(CUgraph graph) {
  delete graph;
  return enter(__func__);
}
STAND_IN cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  ENTER();
  ++graph->kernels;
  return add_node(node, graph, after, count, launch_of(*p));
}
STAND_IN cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMCPY3D* p, CUcontext) {
  ENTER();
  if (!valid(*p)) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = static_cast<long long>(p->WidthInBytes);
  if (p->srcMemoryType == CU_MEMORYTYPE_HOST) graph->bytes_to_gpu += bytes;
  if (p->dstMemoryType == CU_MEMORYTYPE_HOST) graph->bytes_from_gpu += bytes;
  return add_node(node, graph, after, count, work_of(*p));
}
STAND_IN cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  ENTER();
  if (!known(p->dst, p->width)) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, count, work_of(*p));
}
STAND_IN cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  std::size_t count, CUgraph child) {
  ENTER();
  graph->kernels += child->kernels;
  return add_node(node, graph, after, count, work_of(child));
}
STAND_IN cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  ENTER();
  *made = new CUgraphExec_st;
  (*made)->work = graph->work;
  (*made)->kernels = graph->kernels;
  (*made)->bytes_to_gpu = graph->bytes_to_gpu;
  (*made)->bytes_from_gpu = graph->bytes_from_gpu;
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecDestroy(CUgraphExec made) {
  delete made;
  return enter(__func__);
}
STAND_IN cuGraphExecKernelNodeSetParams(CUgraphExec made, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* p) {
  ENTER();
  made->work[node->number] = launch_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecMemcpyNodeSetParams(CUgraphExec made, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                        CUcontext) {
  ENTER();
  if (!valid(*p)) return CUDA_ERROR_INVALID_VALUE;
  made->work[node->number] = work_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecMemsetNodeSetParams(CUgraphExec made, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  ENTER();
  if (!known(p->dst, p->width)) return CUDA_ERROR_INVALID_VALUE;
  made->work[node->number] = work_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecChildGraphNodeSetParams(CUgraphExec made, CUgraphNode node, CUgraph child) {
  ENTER();
  made->work[node->number] = work_of(child);
  return CUDA_SUCCESS;
}
// As it is now: later changes are for later launches.
STAND_IN cuGraphLaunch(CUgraphExec made, CUstream stream) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  ++counts.graph_launches;
  counts.kernels += made->kernels;
  counts.bytes_to_gpu += made->bytes_to_gpu;
  counts.bytes_from_gpu += made->bytes_from_gpu;
  stream->add_work([work = made->work] {
    for (const auto& node : work) node();
  });
  return CUDA_SUCCESS;
}
}
