// What `ps_train` trains: an MLP by Adam on parameter servers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/timing.h"

namespace bench {

struct Batch {
  tandem::Tensor images, labels;
};

inline std::vector<Batch> mlp_batches() {
  const Samples made = samples(kMlpSamples);
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < kMlpSamples; at += kMlpBatch) {
    const auto* image = made.images.data() + at * kPixels;
    const auto* label = made.labels.data() + at;
    batches.push_back({tandem::Tensor::from(std::vector<float>(image, image + kMlpBatch * kPixels),
                                            {kMlpBatch, kPixels}),
                       tandem::Tensor::from(std::vector<std::int32_t>(label, label + kMlpBatch))});
  }
  return batches;
}

/// Both sides have trained on the same.
inline double check_of(const std::vector<Batch>& batches) {
  double sum = 0;
  for (const Batch& batch : batches) sum += batch.images.array().data<float>()[0];
  return sum;
}

/// By ParameterServerStrategy.
class MlpTraining {
 public:
  using Strategy = tandem::distribute::ParameterServerStrategy;
  MlpTraining(Strategy::Options options, const std::vector<Batch>& batches)
      : batches_(batches), strategy_(std::move(options)) {
    strategy_.add_variables(model_.trainable_weights());
    step_ = strategy_.train_function(
        [this](std::span<const tandem::Tensor> batch) {
          return std::vector<tandem::Tensor>{loss_(batch[1], model_(batch[0], {.training = true}))};
        },
        {batches_[0].images, batches_[0].labels});
  }

  Strategy& strategy() { return strategy_; }
  double last_loss() const { return last_loss_; }

  /// Steps in a second, of which so many are scheduled at a time, by default an epoch's.
  double steps_per_second(double seconds) { return steps_per_second(seconds, batches_.size()); }
  double steps_per_second(double seconds, std::size_t steps_at_a_time) {
    const double start = now();
    double steps = 0;
    while (now() - start < seconds) {
      Strategy::RemoteValue last;
      for (std::size_t i = 0; i < steps_at_a_time; ++i) {
        const auto& [images, labels] = batches_[next_batch_++ % batches_.size()];
        last = strategy_.schedule(step_, {images, labels});
      }
      strategy_.join();
      steps += static_cast<double>(steps_at_a_time);
      last_loss_ = strategy_.fetch(last)[0].item<float>();
    }
    return steps / (now() - start);
  }
  /// One step, from its begin until it is done.
  void step() {
    strategy_.schedule(step_, {batches_[0].images, batches_[0].labels});
    strategy_.join();
  }

 private:
  const std::vector<Batch>& batches_;
  const tandem::keras::Sequential model_{tandem::keras::Input({kPixels}),
                                         tandem::keras::Dense(kMlpHidden, {.activation = "relu"}),
                                         tandem::keras::Dense(kClasses)};
  const tandem::keras::losses::SparseCategoricalCrossentropy loss_{{.from_logits = true}};
  Strategy strategy_;
  std::shared_ptr<const Strategy::Function> step_;
  std::size_t next_batch_ = 0;
  double last_loss_ = 0;
};

}  // namespace bench
