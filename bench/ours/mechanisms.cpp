// What makes models fast, each in a graph of its own that TensorFlow exported, or in a model of
// ours.
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/large_graphs.h"
#include "bench/common/model.h"
#include "bench/common/timing.h"

namespace {

namespace td = tandem;

// Milliseconds of a training step of a convolutional network, under a policy; wide enough that
// products take most of the time. `check` is the loss before training, from equal weights.
class PolicyStep {
 public:
  explicit PolicyStep(const char* policy) {
    using namespace td::keras;
    mixed_precision::set_global_policy(policy);
    td::random::set_seed(1);
    const auto block = [](std::int64_t filters) -> std::vector<Layer> {
      return {Conv2D(filters, 3, {.padding = "same", .use_bias = false}), BatchNormalization(),
              ReLU()};
    };
    std::vector<Layer> layers{Input({32, 32, 32})};
    for (const std::int64_t filters : {64, 64, 128, 128}) {
      for (const Layer& layer : block(filters)) layers.push_back(layer);
      if (filters == 64 && layers.size() == 7) layers.push_back(MaxPooling2D());
    }
    layers.push_back(GlobalAveragePooling2D());
    layers.push_back(Dense(256, {.activation = "relu"}));
    layers.push_back(Dense(10, {.activation = "softmax", .dtype = "float32"}));
    model_ = Sequential(layers);
    model_.compile({.optimizer = optimizers::SGD({.learning_rate = 0.01, .momentum = 0.9}),
                    .loss = "sparse_categorical_crossentropy"});
    mixed_precision::set_global_policy("float32");
    images_ = td::random::stateless_normal({32, 32, 32, 32}, td::Tensor{1, 2});
    labels_ = td::floormod(td::range(td::Tensor(32)), 10);
    first_loss_ = *model_.test_on_batch(images_, labels_).find("loss");
  }

  bench::Answer measure() {
    bench::Answer answer;
    answer.value = 1e3 * bench::seconds_per_call([&](std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i) model_.train_on_batch(images_, labels_);
                   });
    answer.check = first_loss_;
    return answer;
  }

 private:
  td::keras::Model model_;
  td::Tensor images_;
  td::Tensor labels_;
  double first_loss_ = 0;
};

bench::Answer mixed_bfloat16() {
  static PolicyStep step("mixed_bfloat16");
  return step.measure();
}
bench::Answer mixed_bfloat16_in_float() {
  static PolicyStep step("float32");
  return step.measure();
}

// Megabytes read and written in a second by copying, each thread its part: what operations that
// compute little can reach.
bench::Answer info_copy() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;  // a part
  const auto threads = static_cast<std::size_t>(bench::threads());
  static std::vector<char> from(kBytes * threads, 1), to(kBytes * threads);
  const auto copy = [&](std::size_t part) {
    std::memcpy(to.data() + part * kBytes, from.data() + part * kBytes, kBytes);
  };
  const double seconds = bench::seconds_per_call([&](std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<std::thread> others;
      for (std::size_t part = 1; part < threads; ++part) others.emplace_back(copy, part);
      copy(0);
      for (std::thread& other : others) other.join();
    }
  });
  bench::Answer answer;
  answer.value = 2e-6 * static_cast<double>(kBytes * threads) / seconds;
  return answer;
}

// From 25,000 nodes to 50,000.
template <bench::LargeGraph kKind>
bench::Answer growth() {
  bench::Answer answer;
  answer.value = bench::growth_of_first_result(kKind, 25'000);
  return answer;
}

template <bench::LargeGraph kKind>
bench::Answer first_result_200k() {
  bench::Answer answer;
  answer.value = bench::seconds_to_first_result(kKind, 200'000);
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  return bench::measure_models(argc, argv,
                               {{"info_copy", info_copy},
                                {"growth_wide", growth<bench::LargeGraph::kWide>},
                                {"growth_constants", growth<bench::LargeGraph::kConstants>},
                                {"growth_outputs", growth<bench::LargeGraph::kOutputs>},
                                {"growth_chain", growth<bench::LargeGraph::kChain>},
                                {"wide_200k", first_result_200k<bench::LargeGraph::kWide>},
                                {"chain_200k", first_result_200k<bench::LargeGraph::kChain>},
                                {"mixed_bfloat16", mixed_bfloat16},
                                {"mixed_bfloat16_in_float", mixed_bfloat16_in_float}});
}
