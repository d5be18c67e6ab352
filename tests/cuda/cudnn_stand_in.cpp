// A stand-in for cuDNN's graph interface, as far as Tandem uses it: a convolution or one of its two
// gradients, and what follows a convolution, and attention (cudnn_attention.h), by plain loops on
// the stand-in for the driver.
//
// It has three engines: one for a convolution alone; one that says that its results may differ from
// run to run and takes a workspace; and one that says that it uses Tensor Cores, which alone takes
// graphs of several operations. It is stricter than the library where that finds mistakes:
// descriptors must be finalized before they are used, tensors lie in device memory and aligned as
// they were said to be, and the whole workspace is written.

#include "tests/cuda/cudnn_stand_in.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/kernels/cuda/cudnn/cudnn_api.h"

#include "tests/cuda/cudnn_attention.h"
#include "tests/cuda/library_stand_in.h"

struct cudnnContext {
  CUstream_st* stream = nullptr;
};

namespace {

using stand_in::Attribute;
using stand_in::Data;
using stand_in::data_of;
using stand_in::driver;
using stand_in::Graph;
using stand_in::Number;
using stand_in::Shape;
using stand_in::size_of;
using stand_in::Tensor;
using stand_in::tensor_of;

struct Counts {
  std::atomic<long long> heuristics{0}, plans{0}, attentions{0};
  std::array<std::atomic<long long>, 3> runs{};
};
Counts counts;

constexpr std::int64_t kPlain = 0, kNondeterministic = 1, kTensorCore = 2;
constexpr std::int64_t kWorkspace = 1024;  // of the engine that splits sums

// ---- What graphs compute ----

struct Following {
  cudnnPointwiseMode_t mode;
  std::optional<Tensor> with;
};

enum class Kind { kForward, kInputGradient, kFilterGradient };

}  // namespace

struct stand_in::Graph {
  std::shared_ptr<const AttentionProgram> attention;  // or a convolution
  Kind kind = Kind::kForward;
  Tensor x, filter, y;
  std::array<std::int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  std::vector<Following> following;
};

namespace {

// The convolution of a graph. False if it is none, or does not fit.
bool read_convolution(const Data& operation, Graph& g) {
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, filter, y;
  };
  constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  const auto names = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](const Names& n) { return n.type == operation.type; });
  if (names == std::end(kNames)) return false;
  g.kind = static_cast<Kind>(names - kNames);
  const Data* const window = operation.part(names->window);
  const auto x = tensor_of(operation.part(names->x));
  const auto filter = tensor_of(operation.part(names->filter));
  const auto y = tensor_of(operation.part(names->y));
  if (!window || !x || !filter || !y) return false;
  g.x = *x;
  g.filter = *filter;
  g.y = *y;
  const std::size_t axes = g.x.sizes.size() - 2;
  const Shape before = window->list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const Shape behind = window->list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const Shape strides = window->list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const Shape dilations = window->list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (before.size() != axes || before != behind || strides.size() != axes ||
      dilations.size() != axes)
    return false;
  for (std::size_t i = 0; i < axes; ++i) {
    g.pad[3 - axes + i] = before[i];
    g.stride[3 - axes + i] = strides[i];
    g.dilation[3 - axes + i] = dilations[i];
  }
  bool fits = g.filter.sizes[0] == g.y.sizes[1] && g.x.sizes[0] == g.y.sizes[0] &&
              g.x.sizes[1] % g.filter.sizes[1] == 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t covered = (g.filter.size(axis + 2) - 1) * g.dilation[axis] + 1;
    const std::int64_t places = g.x.size(axis + 2) + 2 * g.pad[axis] - covered;
    fits = fits && places >= 0 && g.y.size(axis + 2) == places / g.stride[axis] + 1;
  }
  return fits;
}

// Null if it is no graph that this library knows.
std::shared_ptr<const Graph> read_graph(const Data& data) {
  const auto operations = data.attributes.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations == data.attributes.end() || operations->second.descriptors.empty()) return nullptr;
  auto g = std::make_shared<Graph>();
  const auto& all = operations->second.descriptors;
  if (all[0]->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    g->attention = stand_in::AttentionProgram::read(all);
    return g->attention ? g : nullptr;
  }
  if (!read_convolution(*all[0], *g)) return nullptr;
  std::int64_t result = g->y.id;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Data* const how = all[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto from = tensor_of(all[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const auto to = tensor_of(all[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const auto mode = how ? how->one<int>(CUDNN_ATTR_POINTWISE_MODE) : std::nullopt;
    if (!mode || !from || !to || from->id != result || !from->is_virtual) return nullptr;
    g->following.push_back({static_cast<cudnnPointwiseMode_t>(*mode),
                            tensor_of(all[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC))});
    result = to->id;
    g->y = *to;
  }
  return g->y.is_virtual ? nullptr : g;
}

struct Job {
  std::shared_ptr<const Graph> graph;
  std::map<std::int64_t, void*> at;
  std::map<std::int64_t, float> numbers;  // given by value
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;

  template <class Visit>
  static void each(const Tensor& t, Visit visit) {
    std::array<std::int64_t, 5> i{};
    for (i[0] = 0; i[0] < t.size(0); ++i[0])
      for (i[1] = 0; i[1] < t.size(1); ++i[1])
        for (i[2] = 0; i[2] < t.size(2); ++i[2])
          for (i[3] = 0; i[3] < t.size(3); ++i[3])
            for (i[4] = 0; i[4] < t.size(4); ++i[4]) visit(i);
  }

  double value(const Tensor& t, const std::array<std::int64_t, 5>& i) const {
    return stand_in::element(at.at(t.id), t.number, t.offset(i));
  }

  // Calls `visit` with the places of x and of the filter that an element of y is made from.
  template <class Visit>
  void each_factor(const std::array<std::int64_t, 5>& y, Visit visit) const {
    const Graph& g = *graph;
    const std::int64_t depth = g.filter.sizes[1];
    const std::int64_t group = y[1] / (g.y.sizes[1] / (g.x.sizes[1] / depth));
    std::array<std::int64_t, 5> f{y[1]}, x{y[0]};
    for (f[1] = 0; f[1] < depth; ++f[1]) {
      x[1] = group * depth + f[1];
      for (f[2] = 0; f[2] < g.filter.size(2); ++f[2])
        for (f[3] = 0; f[3] < g.filter.size(3); ++f[3])
          for (f[4] = 0; f[4] < g.filter.size(4); ++f[4]) {
            bool inside = true;
            for (std::size_t a = 0; a < 3; ++a) {
              x[a + 2] = y[a + 2] * g.stride[a] - g.pad[a] + f[a + 2] * g.dilation[a];
              inside = inside && x[a + 2] >= 0 && x[a + 2] < g.x.size(a + 2);
            }
            if (inside) visit(x, f);
          }
    }
  }

  double followed(double v, const std::array<std::int64_t, 5>& y) const {
    for (const Following& f : graph->following) {
      if (f.mode == CUDNN_POINTWISE_ADD) v += value(*f.with, y);
      if (f.mode == CUDNN_POINTWISE_RELU_FWD) v = v < 0 ? 0 : v;
      if (f.mode == CUDNN_POINTWISE_GELU_APPROX_TANH_FWD) v = stand_in::gelu_tanh(v);
    }
    return v;
  }

  void operator()() const {
    const Graph& g = *graph;
    if (workspace_bytes != 0) std::memset(workspace, 0xff, workspace_bytes);
    if (g.attention) return g.attention->run(at, numbers);
    if (g.kind == Kind::kForward) {
      each(g.y, [&](const auto& i) {
        double sum = 0;
        each_factor(
            i, [&](const auto& x, const auto& f) { sum += value(g.x, x) * value(g.filter, f); });
        stand_in::put(at.at(g.y.id), g.y.number, g.y.offset(i), followed(sum, i));
      });
      return;
    }
    const bool by_x = g.kind == Kind::kInputGradient;
    const Tensor& target = by_x ? g.x : g.filter;
    std::map<std::int64_t, double> sums;  // by offset
    each(target, [&](const auto& i) { sums[target.offset(i)] = 0; });
    each(g.y, [&](const auto& i) {
      const double dy = value(g.y, i);
      each_factor(i, [&](const auto& x, const auto& f) {
        sums[target.offset(by_x ? x : f)] += dy * (by_x ? value(g.filter, f) : value(g.x, x));
      });
    });
    for (const auto& [offset, sum] : sums)
      stand_in::put(at.at(target.id), target.number, offset, sum);
  }
};

// ---- Engines ----

std::vector<std::int64_t> engines_of(const Graph& g, int mode) {
  if (g.attention || !g.following.empty()) {
    return mode == CUDNN_HEUR_MODE_A ? std::vector<std::int64_t>{kTensorCore}
                                     : std::vector<std::int64_t>{};
  }
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {kPlain};
  return {kTensorCore, kNondeterministic, kPlain};
}

cudnnStatus_t entered(const char* name) {
  const int failed = driver().library_call(name);
  if (failed == 0) return CUDNN_STATUS_SUCCESS;
  constexpr int kOutOfMemory = 2;
  return failed == kOutOfMemory ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                                : CUDNN_STATUS_EXECUTION_FAILED;
}
#define ENTER() \
  if (const cudnnStatus_t failed = entered(__func__); failed != CUDNN_STATUS_SUCCESS) return failed

// What a descriptor becomes when it is finalized.
cudnnStatus_t finalize(Data& d) {
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return tensor_of(&d) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      if (!d.one<void*>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)) return CUDNN_STATUS_BAD_PARAM;
      d.graph = read_graph(d);
      return d.graph ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      const Data* const graph = d.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (!graph || !d.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE)) return CUDNN_STATUS_BAD_PARAM;
      d.graph = graph->graph;
      ++counts.heuristics;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Data* const config = d.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (!config || !d.one<void*>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) return CUDNN_STATUS_BAD_PARAM;
      d.graph = config->graph;
      d.engine = config->engine;
      ++counts.plans;
      return CUDNN_STATUS_SUCCESS;
    }
    default: return CUDNN_STATUS_SUCCESS;
  }
}

std::int64_t workspace_of(const Data& plan) {
  return plan.engine == kNondeterministic ? kWorkspace : 0;
}

bool is_there(const Tensor& t, const std::map<std::int64_t, void*>& at) {
  const auto found = at.find(t.id);
  return found != at.end() && driver().is_device_memory(found->second, t.bytes()) != 0 &&
         reinterpret_cast<std::uintptr_t>(found->second) %
                 static_cast<std::uintptr_t>(t.alignment) ==
             0;
}

}  // namespace

extern "C" {

#define EXPORTED __attribute__((visibility("default")))
#define STAND_IN EXPORTED cudnnStatus_t

EXPORTED std::size_t cudnnGetVersion(void) { return 91900; }
EXPORTED std::size_t cudnnGetCudartVersion(void) { return 13000; }
EXPORTED const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_OF_A_STAND_IN";
}
STAND_IN cudnnCreate(cudnnHandle_t* handle) {
  ENTER();
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnSetStream(cudnnHandle_t handle, CUstream_st* stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                      cudnnBackendDescriptor_t* made) {
  auto data = std::make_shared<Data>();
  data->type = type;
  *made = new std::shared_ptr<Data>(std::move(data));
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<std::shared_ptr<Data>*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Data& d = *data_of(descriptor);
  if (d.finalized) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = finalize(d);
  d.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}
STAND_IN cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                  cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, std::int64_t count,
                                  const void* elements) {
  Data& d = *data_of(descriptor);
  if (d.finalized) return CUDNN_STATUS_BAD_PARAM;
  Attribute attribute{.type = type, .count = count, .bytes = {}, .descriptors = {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* const all = static_cast<const cudnnBackendDescriptor_t*>(elements);
    for (std::int64_t i = 0; i < count; ++i) {
      if (!data_of(all[i])->finalized) return CUDNN_STATUS_BAD_PARAM;
      attribute.descriptors.push_back(data_of(all[i]));
    }
  } else {
    attribute.bytes.resize(static_cast<std::size_t>(count) * size_of(type));
    std::memcpy(attribute.bytes.data(), elements, attribute.bytes.size());
  }
  d.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                                  std::int64_t requested, std::int64_t* count, void* elements) {
  const Data& d = *data_of(descriptor);
  if (!d.finalized) return CUDNN_STATUS_BAD_PARAM;
  const auto give = [&](cudnnBackendDescriptor_t to, std::int64_t engine) {
    Data& given = *data_of(to);
    given.graph = d.graph;
    given.engine = engine;
    given.finalized = true;
  };
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const auto engines = engines_of(*d.graph, *d.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE));
      *count = std::min(requested, static_cast<std::int64_t>(engines.size()));
      for (std::int64_t i = 0; i < *count; ++i)
        give(static_cast<cudnnBackendDescriptor_t*>(elements)[i],
             engines[static_cast<std::size_t>(i)]);
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      give(*static_cast<cudnnBackendDescriptor_t*>(elements), d.engine);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      *count = 1;
      *static_cast<std::int64_t*>(elements) = d.engine;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = d.engine == kPlain ? 0 : 1;
      if (*count == 1) {
        *static_cast<cudnnBackendNumericalNote_t*>(elements) =
            d.engine == kTensorCore ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE
                                    : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *count = 1;
      *static_cast<std::int64_t*>(elements) = workspace_of(d);
      return CUDNN_STATUS_SUCCESS;
    default: return CUDNN_STATUS_BAD_PARAM;
  }
}
STAND_IN cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t variants) {
  ENTER();
  const Data& p = *data_of(plan);
  const Data& v = *data_of(variants);
  if (!p.finalized || !v.finalized || !handle->stream) return CUDNN_STATUS_BAD_PARAM;
  Job job{.graph = p.graph};
  const auto ids = v.list<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = v.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != pointers.size()) return CUDNN_STATUS_BAD_PARAM;
  for (std::size_t i = 0; i < ids.size(); ++i) job.at[ids[i]] = pointers[i];
  job.workspace = v.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).value_or(nullptr);
  job.workspace_bytes = static_cast<std::size_t>(workspace_of(p));
  bool there = job.workspace_bytes == 0 ||
               driver().is_device_memory(job.workspace, job.workspace_bytes) != 0;
  if (p.graph->attention) {
    for (const auto& [id, t] : p.graph->attention->operands()) {
      if (t.is_by_value && job.at.count(id) == 1) {
        job.numbers[id] = *static_cast<const float*>(job.at.at(id));
      } else {
        there = there && is_there(t, job.at);
      }
    }
    if (!there) return CUDNN_STATUS_BAD_PARAM;
    ++counts.attentions;
    driver().add_kernel(handle->stream, job);
    return CUDNN_STATUS_SUCCESS;
  }
  for (const Tensor* t : {&p.graph->x, &p.graph->filter, &p.graph->y})
    there = there && is_there(*t, job.at);
  for (const Following& f : p.graph->following)
    there = there && (!f.with || is_there(*f.with, job.at));
  if (!there) return CUDNN_STATUS_BAD_PARAM;
  ++counts.runs[static_cast<std::size_t>(p.engine)];
  driver().add_kernel(handle->stream, job);
  return CUDNN_STATUS_SUCCESS;
}

EXPORTED const CudnnStandInControl* cudnn_stand_in_control() {
  static const CudnnStandInControl control = {
      .used =
          [] {
            return CudnnStandInUse{.heuristics = counts.heuristics,
                                   .plans = counts.plans,
                                   .plain = counts.runs[0],
                                   .nondeterministic = counts.runs[1],
                                   .tensor_core = counts.runs[2],
                                   .attentions = counts.attentions};
          },
  };
  return &control;
}
}
