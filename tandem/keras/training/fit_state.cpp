#include "tandem/keras/internal/fit_state.h"

#include <random>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/fit_loop.h"
#include "tandem/runtime/runtime.h"

namespace tandem::keras::internal {
namespace {

// Metrics of a fit, some of which come with the first batch.
class MetricsObject final : public train::Trackable {
 public:
  explicit MetricsObject(Trainer& trainer) : trainer_(trainer) {}
  const void* identity() const override { return &trainer_; }
  void track(train::TrackedObject& object) override { trainer_.track_metrics(object); }
  void on_further_parts(const std::function<void()>& changed) override {
    trainer_.when_ready(changed);
  }

 private:
  Trainer& trainer_;
};

}  // namespace

void FitState::track(train::TrackedObject& object) {
  object.add("metrics", std::make_shared<MetricsObject>(loop_.trainer()));
  // As in TensorFlow, a checkpoint of the model alone leaves out where its random layers are.
  int number = 0;
  for (const Variable& state : loop_.trainer().random_states())
    object.add(cat("random_states/", number++), state);
  object.add_value({.attribute = "FIT_STATE",
                    .name = "",
                    .save = [this] { return Tensor(Array::scalar(loop_.save_state())); },
                    .restore = [this](const Tensor& t) { restored = t.item<std::string>(); },
                    .dtype = DType::kString,
                    .shape = PartialShape::scalar()});
}

void FitState::on_further_parts(const std::function<void()>& changed) {
  loop_.trainer().when_ready(changed);
}

void FitState::use_own_random_stream() {
  const Runtime::SeedPair next = Runtime::current().next_seeds(false, 0);
  RngPosition::Stream stream;
  stream.seed = static_cast<std::uint64_t>(next.seed);
  stream.seed2 = static_cast<std::uint64_t>(next.seed2);
  if (next.seed == 0 && next.seed2 == 0) {
    std::random_device device;
    stream.seed = (std::uint64_t{device()} << 32) | device();
    stream.seed2 = (std::uint64_t{device()} << 32) | device();
  }
  random = stream;
}

}  // namespace tandem::keras::internal
