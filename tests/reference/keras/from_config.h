#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/keras/keras.h>

namespace reference {

// Objects of td::keras from a class name and arguments of Keras. All throw std::runtime_error for a
// class or an argument that they do not know, so that a record cannot pass by being ignored.

tandem::keras::Layer make_layer(const std::string& name, const nlohmann::json& config);
tandem::keras::Loss make_loss(const std::string& name, const nlohmann::json& config);
tandem::keras::Metric make_metric(const std::string& name, const nlohmann::json& config);
tandem::keras::Optimizer make_optimizer(const std::string& name, const nlohmann::json& config,
                                        const nlohmann::json& schedule);
tandem::keras::LearningRateSchedule make_schedule(const std::string& name,
                                                  const nlohmann::json& config);
tandem::keras::Initializer make_initializer(const std::string& name, const nlohmann::json& config);

/// The models of keras_cases.py by their names.
tandem::keras::Model make_model(const std::string& name);

/// A config whose arguments are used up one by one; what remains at the end is unknown.
class Arguments {
 public:
  explicit Arguments(const nlohmann::json& config) : config_(config) {}
  ~Arguments() noexcept(false);

  template <class T>
  void take(const char* name, T& into) {
    if (const auto* value = find(name)) into = value->get<T>();
  }
  template <class T>
  void take(const char* name, std::optional<T>& into) {
    if (const auto* value = find(name); value && !value->is_null()) into = value->get<T>();
  }
  void take(const char* name, tandem::keras::ActivationFunction& into);
  void take(const char* name, tandem::keras::Regularizer& into);
  const nlohmann::json* find(const char* name);
  /// One that must be there.
  template <class T>
  T taken(const char* name) {
    const nlohmann::json* value = find(name);
    if (!value) throw std::runtime_error(std::string("the argument is missing: ") + name);
    return value->get<T>();
  }

 private:
  nlohmann::json config_;
  std::vector<std::string> used_;
};

}  // namespace reference
