// TensorFlow's C API: an eager scalar addition, and steps of a session on graphs of many small
// operations. Optimisation that would remove the work is off.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tensorflow/c/c_api.h>
#include <tensorflow/c/eager/c_api.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace {

struct Status {
  TF_Status* s = TF_NewStatus();
  ~Status() { TF_DeleteStatus(s); }
  void check() const {
    if (TF_GetCode(s) != TF_OK) throw std::runtime_error(TF_Message(s));
  }
};

// Just enough of protobuf's wire format for the settings below and for counting in an answer.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

std::string number(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}

std::string message(int field, const std::string& body) {
  return varint((static_cast<std::uint64_t>(field) << 3) | 2) + varint(body.size()) + body;
}

std::uint64_t read_varint(const char*& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

// Calls `use` with the body of each length-delimited `field` of the message in [at, end).
template <class Use>
void each(const char* at, const char* end, std::uint64_t field, Use&& use) {
  while (at < end) {
    const std::uint64_t tag = read_varint(at);
    if ((tag & 7) == 2) {
      const std::uint64_t size = read_varint(at);
      if (tag >> 3 == field) use(at, at + size);
      at += size;
    } else if ((tag & 7) == 0) {
      read_varint(at);
    } else {
      at += (tag & 7) == 1 ? 8 : 4;
    }
  }
}

// ConfigProto: two threads a pool; classic optimisation, XLA and Grappler off.
std::string session_config(const std::string& executor) {
  const std::string optimizer = number(3, -1) + number(5, -1);  // opt_level L0, global_jit OFF
  const std::string rewrites = number(19, 1);                   // disable_meta_optimizer
  std::string config = number(2, bench::threads()) + number(5, bench::threads()) +
                       message(10, message(3, optimizer) + message(10, rewrites));
  if (!executor.empty()) config += message(16, message(3, executor));  // experimental
  return config;
}

using TensorPointer = std::unique_ptr<TF_Tensor, void (*)(TF_Tensor*)>;

TensorPointer scalar(float value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, nullptr, 0, sizeof(float));
  *static_cast<float*>(TF_TensorData(tensor)) = value;
  return {tensor, TF_DeleteTensor};
}

class Eager {
 public:
  Eager() {
    const Status status;
    TFE_ContextOptions* options = TFE_NewContextOptions();
    const std::string config = number(2, bench::threads()) + number(5, bench::threads());
    TFE_ContextOptionsSetConfig(options, config.data(), config.size(), status.s);
    status.check();
    context_ = TFE_NewContext(options, status.s);
    TFE_DeleteContextOptions(options);
    status.check();
  }

  bench::Answer add() {
    TFE_TensorHandle* x = handle(0.5f);
    TFE_TensorHandle* one = handle(1.0f);
    const Status status;
    const auto add = [&](TFE_TensorHandle* left) {
      TFE_Op* op = TFE_NewOp(context_, "AddV2", status.s);
      TFE_OpAddInput(op, left, status.s);
      TFE_OpAddInput(op, x, status.s);
      TFE_TensorHandle* result = nullptr;
      int count = 1;
      TFE_Execute(op, &result, &count, status.s);
      TFE_DeleteOp(op);
      status.check();
      return result;
    };
    const auto loop = [&](std::int64_t n) {
      TFE_TensorHandle* y = add(one);
      for (std::int64_t i = 1; i < n; ++i) {
        TFE_TensorHandle* next = add(y);
        TFE_DeleteTensorHandle(y);
        y = next;
      }
      TFE_DeleteTensorHandle(y);
    };
    bench::Answer answer;
    answer.value = bench::seconds_per_call(loop) * 1e6;
    answer.nodes = 1;
    TFE_TensorHandle* sum = add(one);
    answer.check = value(sum);
    for (TFE_TensorHandle* each : {sum, one, x}) TFE_DeleteTensorHandle(each);
    return answer;
  }

 private:
  TFE_TensorHandle* handle(float value) {
    const Status status;
    TFE_TensorHandle* made = TFE_NewTensorHandle(scalar(value).get(), status.s);
    status.check();
    return made;
  }

  static float value(TFE_TensorHandle* from) {
    const Status status;
    const TensorPointer tensor(TFE_TensorHandleResolve(from, status.s), TF_DeleteTensor);
    status.check();
    return *static_cast<float*>(TF_TensorData(tensor.get()));
  }

  TFE_Context* context_ = nullptr;  // lives as long as the process
};

// A graph of additions over two fed scalars, and a session that computes its end.
class Graph {
 public:
  explicit Graph(const std::string& executor) : executor_(executor) {
    y_ = placeholder("y");
    x_ = placeholder("x");
  }

  TF_Output y() const { return y_; }
  TF_Output x() const { return x_; }

  TF_Output add(TF_Output left, TF_Output right) {
    TF_OperationDescription* op =
        TF_NewOperation(graph_, "AddV2", ("work" + std::to_string(made_++)).c_str());
    TF_AddInput(op, left);
    TF_AddInput(op, right);
    return finish(op);
  }

  TF_Output add_all(const std::vector<TF_Output>& inputs) {
    TF_OperationDescription* op =
        TF_NewOperation(graph_, "AddN", ("work" + std::to_string(made_++)).c_str());
    TF_AddInputList(op, inputs.data(), static_cast<int>(inputs.size()));
    return finish(op);
  }

  void start(TF_Output end) {
    end_ = end;
    const Status status;
    TF_SessionOptions* options = TF_NewSessionOptions();
    const std::string config = session_config(executor_);
    TF_SetConfig(options, config.data(), config.size(), status.s);
    status.check();
    session_ = TF_NewSession(graph_, options, status.s);
    TF_DeleteSessionOptions(options);
    status.check();
    nodes_ = made_;
    // The single-threaded executor keeps no statistics of its steps.
    if (const int ran = executor_.empty() ? traced_nodes() : made_; ran != made_) {
      throw std::runtime_error(std::to_string(made_) + " nodes made, " + std::to_string(ran) +
                               " executed");
    }
  }

  bench::Answer run() {
    bench::Answer answer;
    const double step = bench::seconds_per_call([&](std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) this->step(nullptr, nullptr);
    });
    answer.value = step * 1e9 / nodes_;
    answer.nodes = nodes_;
    answer.check = this->step(nullptr, nullptr);
    return answer;
  }

 private:
  TF_Output placeholder(const char* name) {
    TF_OperationDescription* op = TF_NewOperation(graph_, "Placeholder", name);
    TF_SetAttrType(op, "dtype", TF_FLOAT);
    TF_SetAttrShape(op, "shape", nullptr, 0);
    return finish(op);
  }

  TF_Output finish(TF_OperationDescription* op) {
    const Status status;
    TF_Operation* made = TF_FinishOperation(op, status.s);
    status.check();
    return {made, 0};
  }

  float step(const TF_Buffer* run_options, TF_Buffer* metadata) {
    const Status status;
    const TF_Output feeds[] = {y_, x_};
    TF_Tensor* values[] = {one_.get(), half_.get()};
    TF_Tensor* result = nullptr;
    TF_SessionRun(session_, run_options, feeds, values, 2, &end_, &result, 1, nullptr, 0, metadata,
                  status.s);
    status.check();
    const TensorPointer owned(result, TF_DeleteTensor);
    return *static_cast<float*>(TF_TensorData(result));
  }

  // One step with tracing on: how many of our operations did run.
  int traced_nodes() {
    const std::string full_trace = number(1, 3);
    TF_Buffer* options = TF_NewBufferFromString(full_trace.data(), full_trace.size());
    TF_Buffer* metadata = TF_NewBuffer();
    step(options, metadata);
    int count = 0;
    const char* data = static_cast<const char*>(metadata->data);
    each(data, data + metadata->length, 1, [&](const char* stats, const char* stats_end) {
      each(stats, stats_end, 1, [&](const char* device, const char* device_end) {
        each(device, device_end, 2, [&](const char* node, const char* node_end) {
          each(node, node_end, 1, [&](const char* name, const char* name_end) {
            if (std::string(name, name_end).rfind("work", 0) == 0) ++count;
          });
        });
      });
    });
    TF_DeleteBuffer(options);
    TF_DeleteBuffer(metadata);
    return count;
  }

  std::string executor_;
  TF_Graph* graph_ = TF_NewGraph();  // these two live as long as the process
  TF_Session* session_ = nullptr;
  TensorPointer one_ = scalar(1.0f), half_ = scalar(0.5f);
  TF_Output y_{}, x_{}, end_{};
  int made_ = 0, nodes_ = 0;
};

std::unique_ptr<Graph> chain(const std::string& executor) {
  auto graph = std::make_unique<Graph>(executor);
  TF_Output y = graph->y();
  for (int i = 0; i < 2000; ++i) y = graph->add(y, graph->x());
  graph->start(y);
  return graph;
}

std::unique_ptr<Graph> wide(const std::string& executor) {
  auto graph = std::make_unique<Graph>(executor);
  std::vector<TF_Output> ends;
  for (int i = 0; i < 1000; ++i) {
    ends.push_back(graph->add(graph->add(graph->y(), graph->x()), graph->x()));
  }
  graph->start(graph->add_all(ends));
  return graph;
}

std::function<bench::Answer()> kept(std::unique_ptr<Graph> (*make)(const std::string&),
                                    std::string executor) {
  auto graph = std::make_shared<std::unique_ptr<Graph>>();
  return [=] {
    if (!*graph) *graph = make(executor);
    return (*graph)->run();
  };
}

}  // namespace

int main() {
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  auto eager = std::make_shared<std::unique_ptr<Eager>>();
  const auto eager_add = [=] {
    if (!*eager) *eager = std::make_unique<Eager>();
    return (*eager)->add();
  };
  const bench::Rows rows = {
      {"eager_add", eager_add},
      {"graph_chain", kept(chain, "")},
      {"graph_wide", kept(wide, "")},
      {"info_graph_chain_single", kept(chain, "SINGLE_THREADED_EXECUTOR")},
      {"info_graph_wide_single", kept(wide, "SINGLE_THREADED_EXECUTOR")},
  };
  return bench::serve(rows, std::string("tensorflow ") + TF_Version());
}
