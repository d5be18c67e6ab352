#include "tandem/train/moving_average.h"

#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::train {

struct ExponentialMovingAverage::State {
  struct Average {
    Variable of;
    Variable value;
    Variable biased;  // with zero_debias
    Variable steps;
  };
  double decay;
  MovingAverageOptions options;
  std::vector<Average> averages;

  Average* find(const Variable& variable) {
    for (Average& a : averages) {
      if (a.of.is_same(variable)) return &a;
    }
    return nullptr;
  }
  Average& find_or_add(const Variable& variable) {
    if (Average* found = find(variable)) return *found;
    Average a{variable, {}, {}, {}};
    const auto made = [&](const char* suffix, const std::function<Tensor()>& value) {
      return Variable(value, {.trainable = false, .name = variable.name() + suffix});
    };
    a.value = made("/ExponentialMovingAverage", [&] {
      return options.zero_debias ? zeros_like(variable.read_value()) : variable.read_value();
    });
    if (options.zero_debias) {
      a.biased = made("/biased", [&] { return zeros_like(variable.read_value()); });
      a.steps = made("/local_step", [&] { return zeros({}, variable.dtype()); });
    }
    averages.push_back(std::move(a));
    return averages.back();
  }
};

ExponentialMovingAverage::ExponentialMovingAverage(double decay, MovingAverageOptions options)
    : state_(new State{decay, std::move(options), {}}) {}

void ExponentialMovingAverage::apply(const std::vector<Variable>& variables) const {
  for (const Variable& variable : variables) {
    if (!is_floating(variable.dtype())) {
      throw InvalidArgumentError(cat("ExponentialMovingAverage: the variable '", variable.name(),
                                     "' has dtype ", variable.dtype(),
                                     ", but only floating ones have an average."));
    }
    State::Average& a = state_->find_or_add(variable);
    const DType dtype = variable.dtype();
    Tensor decay = cast(Tensor(std::vector<double>{state_->decay}), dtype)[0];
    if (state_->options.num_updates.defined()) {
      const Tensor n = cast(state_->options.num_updates.read_value(), dtype);
      decay = minimum(decay, (n + 1.0) / (n + 10.0));
    }
    const Tensor value = variable.read_value();
    if (!state_->options.zero_debias) {
      a.value.assign_sub((a.value.read_value() - value) * (1.0 - decay));
      continue;
    }
    a.biased.assign_sub((a.biased.read_value() - value) * (1.0 - decay));
    a.steps.assign_add(ones({}, dtype));
    a.value.assign(a.biased.read_value() / (1.0 - pow(decay, a.steps.read_value())));
  }
}

Variable ExponentialMovingAverage::average(const Variable& variable) const {
  if (const State::Average* a = state_->find(variable)) return a->value;
  throw NotFoundError(cat("ExponentialMovingAverage: there is no average of the variable '",
                          variable.name(), "'; apply() makes it."));
}

std::string ExponentialMovingAverage::average_name(const Variable& variable) const {
  return variable.name() + "/ExponentialMovingAverage";
}

std::map<std::string, Variable> ExponentialMovingAverage::variables_to_restore(
    const std::vector<Variable>& variables) const {
  std::map<std::string, Variable> out;
  for (const State::Average& a : state_->averages) out.insert_or_assign(average_name(a.of), a.of);
  for (const Variable& variable : variables) {
    if (!state_->find(variable)) out.emplace(variable.name(), variable);
  }
  return out;
}

}  // namespace tandem::train
