// Training graphs that the real TensorFlow exported, on a device GPU:0 whose kernels run on the
// host: losses and variables are TensorFlow's, no op that computes with floats is left on the CPU
// but in loops, and a step returns to the host for integers alone.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"
#include "tandem/io/graph_session.h"
#include "tandem/io/npy.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using Values = std::map<std::string, Array>;

struct StoredGraph {
  io::GraphSession session;
  Values feeds;
  Values expected;  // loss:0 of each step, and variables behind the last

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : feeds) names.push_back(name);
    return names;
  }
  std::vector<Array> values() const {
    std::vector<Array> values;
    for (const auto& [name, value] : feeds) values.push_back(value);
    return values;
  }
};

Values below(const std::map<std::string, Tensor>& stored, const std::string& folder) {
  Values values;
  for (const auto& [name, value] : stored) {
    if (name.starts_with(folder)) values.emplace(name.substr(folder.size()), value.array());
  }
  return values;
}

StoredGraph stored_graph(const std::string& name) {
  const std::string folder = std::string(TANDEM_TRAINING_GRAPHS) + "/" + name;
  const std::string packed = fs::read_file(folder + "/graph.pb.gz");
  io::ImportedGraph graph = io::import_graph_def(fs::gunzip(packed, std::size_t{1} << 24, name),
                                                 {.format = io::GraphFormat::kBinary});
  const auto values = [&] {
    const DeviceScope on_host("/CPU:0");
    return io::load_npz(folder + "/values.npz");
  }();
  return {.session = io::GraphSession(std::move(graph), {.isolate_state = true}),
          .feeds = below(values, "feeds/"),
          .expected = below(values, "expected/")};
}

struct Case {
  const char* name;
  std::set<std::string> on_cpu;  // ops, but for constants and what is fed
  // What a step is for the GPU, where no loop decides how often its body runs. Between two pieces
  // of work the host reads what it goes on with.
  int pieces = 0;
  int bytes_read = 0;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class TrainingGraph : public testing::TestWithParam<Case> {
 protected:
  StoredGraph graph_ = stored_graph(GetParam().name);
};

// The error is relative to the largest value of the tensor.
void expect_near(const Array& computed, const Array& expected, const std::string& what) {
  ASSERT_EQ(computed.dtype(), expected.dtype()) << what;
  ASSERT_EQ(computed.shape(), expected.shape()) << what;
  const auto wide = [](const Array& a) { return cast(Tensor(a), float64).to_vector<double>(); };
  const DeviceScope on_host("/CPU:0");
  const std::vector<double> ours = wide(computed), theirs = wide(expected);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(theirs[i]));
    error = std::max(error, std::abs(ours[i] - theirs[i]));
  }
  EXPECT_LE(error, 5e-4 * largest) << what;
}

TEST_P(TrainingGraph, ComputesWhatTensorFlowDoes) {
  graph_.session.run({}, {}, {"init"});
  const Array losses = graph_.expected.at("loss:0");
  const auto steps = static_cast<std::size_t>(losses.num_elements());
  const auto step = graph_.session.prepare(graph_.names(), {"loss:0"}, {"train"});
  std::vector<float> seen;
  for (std::size_t s = 0; s + 1 < steps; ++s)
    seen.push_back(*step.run(graph_.values())[0].data<float>());
  std::vector<std::string> fetches;
  for (const auto& [name, value] : graph_.expected) fetches.push_back(name);
  const auto last = graph_.session.prepare(graph_.names(), fetches, {"train"});
  const std::vector<Array> results = last.run(graph_.values());
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i] == "loss:0") {
      seen.push_back(*results[i].data<float>());
    } else {
      expect_near(results[i], graph_.expected.at(fetches[i]), fetches[i]);
    }
  }
  expect_near(Tensor::from(seen).array(), losses, "losses");
}

TEST_P(TrainingGraph, LeavesToTheCpuWhatTheHostWorksOn) {
  const auto step = graph_.session.prepare(graph_.names(), {"loss:0"}, {"train"});
  std::vector<PartialShape> shapes;
  for (const auto& [name, value] : graph_.feeds) shapes.emplace_back(value.shape());
  const Explanation explained = explain_function(*step.function(), shapes, {.advice = false});
  std::set<std::string> on_cpu;
  int on_gpu = 0;
  for (const Explanation::Op& op : explained.ops) {
    const std::string& device = explained.devices[static_cast<std::size_t>(op.device)].short_name;
    on_gpu += device == "GPU:0";
    if (device == "CPU:0" && !op.is_constant && op.op != "_Arg") on_cpu.insert(op.op);
  }
  EXPECT_THAT(on_cpu, testing::ContainerEq(GetParam().on_cpu));
  EXPECT_GT(on_gpu, 50);
}

class TrainingGraphInPieces : public TrainingGraph {};

TEST_P(TrainingGraphInPieces, ReturnsToTheHostForNothingElse) {
  constexpr int kWarmUp = 12, kSteps = 4;  // before, a piece is no graph of the driver's yet
  graph_.session.run({}, {}, {"init"});
  const auto step = graph_.session.prepare(graph_.names(), {"loss:0"}, {"train"});
  const std::vector<Array> values = graph_.values();
  for (int i = 0; i < kWarmUp; ++i) step.run(values);
  const StandInCounts before = driver().counts();
  for (int i = 0; i < kSteps; ++i) step.run(values);
  const StandInCounts after = driver().counts();
  EXPECT_EQ(after.graph_launches - before.graph_launches, kSteps * GetParam().pieces);
  EXPECT_EQ(after.bytes_from_gpu - before.bytes_from_gpu, kSteps * GetParam().bytes_read);
}

std::string name_of(const testing::TestParamInfo<Case>& graph) { return graph.param.name; }

// A seed of Keras is a variable of the GPU, from which the host makes the keys of random ops: 8
// bytes for each dropout. The loss has 4, and indices of an embedding come by the host.
const std::set<std::string> kSeeds = {"StatelessRandomGetKeyCounter"};
const auto kWithoutLoops = testing::Values(
    Case{"mlp", kSeeds, 2, 12}, Case{"cnn", kSeeds, 2, 12}, Case{"resnet", {}, 1, 4},
    Case{"mobilenet", {}, 1, 4}, Case{"efficientnet", kSeeds, 2, 20},
    Case{"transformer", {"StatelessRandomGetKeyCounter", "BroadcastGradientArgs"}, 3, 92});

// The lists, stacks and arrays that loops of TensorFlow hand their values on in are the host's.
const std::set<std::string> kLists = {"EmptyTensorList",   "TensorListFromTensor",
                                      "TensorListReserve", "TensorListStack",
                                      "ZerosLike",         "Shape"};
const auto kWithLoops = testing::Values(Case{"lstm", kLists}, Case{"gru", kLists},
                                        Case{"loop",
                                             {"BroadcastGradientArgs",
                                              "ConcatOffset",
                                              "ConcatV2",
                                              "DynamicStitch",
                                              "Enter",
                                              "Identity",
                                              "Mul",
                                              "Prod",
                                              "Range",
                                              "ReadVariableOp",
                                              "ResourceApplyAdam",
                                              "Shape",
                                              "Sigmoid",
                                              "StackPopV2",
                                              "StackPushV2",
                                              "StackV2",
                                              "Tanh",
                                              "TensorArrayGatherV3",
                                              "TensorArrayGradV3",
                                              "TensorArrayReadV3",
                                              "TensorArrayScatterV3",
                                              "TensorArrayV3",
                                              "TensorArrayWriteV3",
                                              "Transpose",
                                              "VarHandleOp"}});

INSTANTIATE_TEST_SUITE_P(WithoutLoops, TrainingGraph, kWithoutLoops, name_of);
INSTANTIATE_TEST_SUITE_P(WithLoops, TrainingGraph, kWithLoops, name_of);
INSTANTIATE_TEST_SUITE_P(WithoutLoops, TrainingGraphInPieces, kWithoutLoops, name_of);

}  // namespace
}  // namespace tandem
