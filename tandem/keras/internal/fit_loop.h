#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/keras/fit_options.h"
#include "tandem/keras/internal/batches.h"
#include "tandem/keras/internal/fit_state.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/model.h"

namespace tandem::keras::internal {

/// One call of fit.
class FitLoop {
 public:
  FitLoop(Model model, std::shared_ptr<Trainer> trainer, data::Dataset dataset,
          data::Dataset validation, const FitOptions& options);
  ~FitLoop();
  FitLoop(const FitLoop&) = delete;
  FitLoop& operator=(const FitLoop&) = delete;
  History run();

  // ---- For FitState. ----
  Trainer& trainer() const { return *trainer_; }
  std::string save_state();

 private:
  Logs run_epoch(int epoch);
  void train(const data::Element& batch, int epoch, std::int64_t step);
  /// Position, dataset, callbacks and history, being saved or restored.
  void visit_state(data::StateArchive& state);
  void resume();
  void validate(int epoch, Logs& logs);
  void add_class_weights(data::Element& batch) const;
  void warn_of_nan(int epoch, const Logs& logs);

  Model model_;
  std::shared_ptr<Trainer> trainer_;
  FitOptions options_;
  Verbose verbose_;
  BatchReader reader_;
  std::optional<BatchReader> validation_;
  CallbackList callbacks_;
  BatchLogs batch_logs_;
  FitState state_{*this};
  History history_;
  std::vector<std::pair<int, Logs>> past_;  // what the history is made of
  bool warned_ = false;
};

/// One pass of evaluate, without printing.
Logs test_pass(Trainer& trainer, BatchReader& reader, const CallbackList& callbacks,
               const std::function<void(std::int64_t step)>& after_step);

}  // namespace tandem::keras::internal
