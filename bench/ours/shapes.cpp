// Calls of 1,000 batch sizes in random order from four threads: what plans for sizes that change
// cost, beside calls of one size and beside TensorFlow.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr int kCallers = 4;
constexpr std::uint64_t kOrderSeed = 6;

// 1,000; a smaller number for a look at the bench itself.
const std::int64_t kSizes = [] {
  const char* given = std::getenv("TANDEM_BENCH_SIZES");
  return given != nullptr ? std::atoll(given) : 1000;
}();

// 1 to 1,000, in an order that TensorFlow takes too.
std::vector<std::int64_t> random_order() {
  std::vector<std::int64_t> sizes(kSizes);
  std::iota(sizes.begin(), sizes.end(), 1);
  std::sort(sizes.begin(), sizes.end(), [](std::int64_t a, std::int64_t b) {
    return bench::mixed(static_cast<std::uint64_t>(a), kOrderSeed) <
           bench::mixed(static_cast<std::uint64_t>(b), kOrderSeed);
  });
  return sizes;
}

// As many images in as many calls, but for half a call.
std::vector<std::int64_t> one_size() { return std::vector<std::int64_t>(kSizes, kSizes / 2); }

// Seconds for a call of each size, by four threads that take the next one each.
double run(const std::vector<std::int64_t>& sizes, const std::function<void(std::int64_t)>& call) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> callers;
  const double start = bench::now();
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      for (std::size_t i = next++; i < sizes.size(); i = next++) call(sizes[i]);
    });
  }
  for (std::thread& caller : callers) caller.join();
  return bench::now() - start;
}

// The first n rows, without a copy.
td::Tensor rows(const td::Tensor& all, std::int64_t n) {
  return td::Tensor(all.array().slice_outer(0, n));
}

Sequential network(bool convolutions) {
  if (!convolutions) {
    return Sequential{Input({bench::kPixels}), Dense(bench::kMlpHidden, {.activation = "relu"}),
                      Dense(bench::kClasses)};
  }
  return Sequential{Input({28, 28, 1}), Conv2D(bench::kCnnFilters, 3, {.activation = "relu"}),
                    MaxPooling2D(), Flatten(), Dense(bench::kClasses)};
}

struct Seconds {
  double varying = 0, fixed = 0;
};

// One kind of work on functions that have not been called: the plans that it needs are part of it.
Seconds work(bool convolutions, bool training) {
  static const bench::Samples made = bench::samples(kSizes);
  const td::Shape shape =
      convolutions ? td::Shape{kSizes, 28, 28, 1} : td::Shape{kSizes, bench::kPixels};
  const td::Tensor images = td::Tensor::from(made.images, shape);
  const td::Tensor labels = td::Tensor::from(made.labels);
  const Sequential model = network(convolutions);
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  const optimizers::Adam optimizer;
  const std::vector<td::Variable> weights = model.trainable_weights();
  optimizer.build(weights);
  td::PartialShape some_images(shape);
  some_images.set_dim(0, td::PartialShape::kUnknown);

  const auto measured = [&](const std::vector<std::int64_t>& sizes) {
    if (!training) {
      const auto predict = td::function([&](td::Tensor x) { return model(x); },
                                        {.name = "predict", .input_shapes = {some_images}});
      return run(sizes, [&](std::int64_t n) { predict(rows(images, n)).array(); });
    }
    const auto train = td::function(
        [&](td::Tensor x, td::Tensor y) {
          td::GradientTape tape;
          const td::Tensor loss = loss_of(y, model(x, {.training = true}));
          optimizer.apply(tape.gradient(loss, weights), weights);
          return loss;
        },
        {.name = "train", .input_shapes = {some_images, {-1}}});
    return run(sizes, [&](std::int64_t n) {
      const float loss = train(rows(images, n), rows(labels, n)).item<float>();
      if (!std::isfinite(loss)) throw std::runtime_error("the loss is not finite");
    });
  };
  Seconds seconds;
  seconds.fixed = measured(one_size());
  seconds.varying = measured(random_order());
  std::cerr << (convolutions ? "cnn " : "mlp ") << (training ? "training" : "inference") << ": "
            << seconds.varying << " s, of one size " << seconds.fixed << " s\n";
  return seconds;
}

constexpr const char* kWorks[] = {"mlp_inference", "mlp_training", "cnn_inference", "cnn_training"};

// All four, one after the other.
struct Whole {
  Seconds seconds[4];
  double plans = 0;  // that calls of varying sizes took
  double stall = 0;  // milliseconds, since the start

  double images_per_second() const {
    double all = 0;
    for (const Seconds& s : seconds) all += s.varying;
    return 4.0 * static_cast<double>(kSizes * (kSizes + 1) / 2) / all;
  }
  double vs_fixed() const {
    double varying = 0, fixed = 0;
    for (const Seconds& s : seconds) {
      varying += s.varying;
      fixed += s.fixed;
    }
    return fixed / varying;
  }
};

// The other rows are of what the row `shapes` has run.
std::vector<Whole>& runs() {
  static std::vector<Whole> all;
  return all;
}

void run_whole() {
  Whole done;
  const td::PlanStats before = td::config::get_plan_stats();
  for (int i = 0; i < 4; ++i) done.seconds[i] = work(/*convolutions=*/i >= 2, /*training=*/i % 2);
  const td::PlanStats after = td::config::get_plan_stats();
  done.plans = static_cast<double>(after.made - before.made - 4);  // but one for each fixed size
  done.stall = 1e3 * after.longest_stall;
  std::cerr << done.plans << " plans, " << after.shared - before.shared
            << " of them shared; planning took " << after.seconds - before.seconds
            << " s in all threads; longest stall " << done.stall << " ms\n";
  runs().push_back(done);
}

template <class Value>
bench::Answer median(Value value) {
  if (runs().empty()) run_whole();
  std::vector<double> values;
  for (const Whole& run : runs()) values.push_back(value(run));
  std::sort(values.begin(), values.end());
  bench::Answer answer;
  answer.value = values[values.size() / 2];
  return answer;
}

bench::Answer shapes() {
  run_whole();
  bench::Answer answer;
  answer.value = runs().back().images_per_second();
  answer.check = 4.0 * static_cast<double>(kSizes * (kSizes + 1) / 2);
  return answer;
}

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  bench::Rows rows{
      {"shapes", shapes},
      {"plans_made", [] { return median([](const Whole& w) { return w.plans; }); }},
      {"stall_max", [] { return median([](const Whole& w) { return w.stall; }); }},
      {"shapes_vs_fixed", [] { return median([](const Whole& w) { return w.vs_fixed(); }); }},
  };
  for (int i = 0; i < 4; ++i) {
    rows[std::string("info_shapes_vs_fixed_") + kWorks[i]] = [i] {
      return median([i](const Whole& w) { return w.seconds[i].fixed / w.seconds[i].varying; });
    };
  }
  return bench::serve(rows, "tandem");
}
