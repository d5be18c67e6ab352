#include "tandem/keras/internal/legacy_slots.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

struct Slot {
  std::string ours;                // "momentum"
  std::vector<std::string> slots;  // what tf.keras called it, then TensorFlow 1 if that differs
  bool numbered = true;            // TensorFlow 1 has it too: "Adam", then "Adam_1"
};

struct Names {
  std::string v1;           // the name of TensorFlow 1's optimizer
  std::vector<Slot> slots;  // in the order in which that makes them
};

// https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/python/training and
// …/python/keras/optimizer_v2.
const std::map<std::string, Names>& table() {
  static const std::map<std::string, Names> names{
      {"SGD", {"Momentum", {{"momentum", {"momentum"}}}}},
      {"Adam",
       {"Adam", {{"momentum", {"m"}}, {"velocity", {"v"}}, {"velocity_hat", {"vhat"}, false}}}},
      {"AdamW",
       {"AdamW", {{"momentum", {"m"}}, {"velocity", {"v"}}, {"velocity_hat", {"vhat"}, false}}}},
      {"Nadam", {"Nadam", {{"momentum", {"m"}}, {"velocity", {"v"}}}}},
      {"Adamax", {"AdaMax", {{"momentum", {"m"}}, {"norm", {"v"}}}}},
      {"RMSprop",
       {"RMSProp",
        {{"velocity", {"rms"}}, {"average_gradient", {"mg"}}, {"momentum", {"momentum"}}}}},
      {"Adagrad", {"Adagrad", {{"accumulator", {"accumulator"}}}}},
      {"Adadelta",
       {"Adadelta",
        {{"accumulated_grad", {"accum_grad", "accum"}},
         {"accumulated_delta_var", {"accum_var", "accum_update"}}}}},
      {"Ftrl", {"Ftrl", {{"accumulator", {"accumulator", "accum"}}, {"linear", {"linear"}}}}}};
  return names;
}

class State {
 public:
  State(const OptimizerImpl& optimizer, const Names& names, train::TrackedObject& object)
      : optimizer_(optimizer), names_(names), object_(object) {}

  void add() {
    if (optimizer_.class_name() == "SGD" && !optimizer_.weights().empty())
      rate_ = optimizer_.learning_rate();
    for (const Variable& weight : optimizer_.weights()) add_slots(weight);
    if (optimizer_.iterations().defined()) add_steps();
  }

 private:
  // "adam/dense_kernel_momentum" of "dense/kernel".
  Variable slot(const Variable& weight, const std::string& name) const {
    std::string path = weight.name();
    std::replace(path.begin(), path.end(), '/', '_');
    const std::string full = cat(optimizer_.settings().name, "/", path, "_", name);
    for (const Variable& variable : optimizer_.variables())
      if (variable.name() == full && variable.shape() == weight.shape()) return variable;
    return {};
  }

  void add_slots(const Variable& weight) const {
    int number = 0;
    for (const Slot& known : names_.slots) {
      const Variable value = slot(weight, known.ours);
      const bool zeros_there =
          !value.defined() && optimizer_.class_name() == "RMSprop" && known.ours == "momentum";
      if (!value.defined() && !zeros_there) continue;
      train::LegacySlot legacy{.variable = weight, .value = value, .slots = known.slots};
      if (known.numbered) {
        legacy.names.push_back(number == 0 ? cat("{}/", names_.v1)
                                           : cat("{}/", names_.v1, "_", number));
        ++number;
      }
      const std::string former = cat(optimizer_.class_name(), "/{}/", known.slots.front());
      legacy.names.insert(legacy.names.end(), {former, cat("training/", former)});
      // TensorFlow 1's momentum is a sum of gradients, ours one of steps.
      if (rate_.defined())
        legacy.factor = [rate = rate_] { return -static_cast<double>(rate.item<float>()); };
      object_.add_slot(std::move(legacy));
    }
  }

  void add_steps() const {
    const std::string& name = optimizer_.class_name();
    train::LegacySteps steps{.steps = optimizer_.iterations(),
                             .counters = {name + "/iter", cat("training/", name, "/iter")},
                             .powers = {}};
    const Config config = optimizer_.config();
    const auto decay = [&](const char* argument) {
      const ConfigValue* value = config.find(argument);
      const auto* number = value ? std::get_if<double>(value) : nullptr;
      return number ? *number : 0;
    };
    if (names_.v1.starts_with("Ada") && decay("beta_1") > 0)
      steps.powers.emplace_back("beta1_power", decay("beta_1"));
    if (names_.v1.starts_with("Adam") && decay("beta_2") > 0)
      steps.powers.emplace_back("beta2_power", decay("beta_2"));
    object_.add_steps(std::move(steps));
  }

  const OptimizerImpl& optimizer_;
  const Names& names_;
  train::TrackedObject& object_;
  Tensor rate_;  // of SGD
};

}  // namespace

void add_legacy_state(const OptimizerImpl& optimizer, train::TrackedObject& object) {
  const auto names = table().find(optimizer.class_name());
  if (names != table().end()) State(optimizer, names->second, object).add();
}

}  // namespace tandem::keras::internal
