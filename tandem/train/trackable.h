#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/data/dataset.h"
#include "tandem/ops/random_generator.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"
#include "tandem/train/legacy_state.h"

namespace tandem::train {

class Tracked;

/// A value that a checkpoint holds of an object.
struct TANDEM_EXPORT TrackedValue {
  std::string attribute = "VARIABLE_VALUE";  ///< which of the object's values
  std::string name;                          ///< for people and for checkpoints without objects
  std::function<Tensor()> save;
  std::function<void(const Tensor&)> restore;
  /// What is restored must be of this dtype and shape.
  DType dtype = DType::kInvalid;  ///< kInvalid: any
  PartialShape shape = {};
};

/// What an object says of itself while a checkpoint is made or restored.
class TANDEM_EXPORT TrackedObject {
 public:
  virtual ~TrackedObject();
  /// A part and its name. A '/' leads to an object in between: "cell/kernel".
  virtual void add(const std::string& name, const Tracked& part) = 0;
  virtual void add_value(TrackedValue value) = 0;
  /// What an optimizer keeps, under the names that those before Keras 3 gave it.
  virtual void add_slot(LegacySlot slot) = 0;
  virtual void add_steps(LegacySteps steps) = 0;
};

/// An object that checkpoints hold. Yours derive from it and name their parts:
///
///     struct Net : td::train::Trackable {
///       td::Variable w{td::zeros({3})};
///       td::keras::Dense dense{4};
///       void track(td::train::TrackedObject& object) override {
///         object.add("w", w);
///         object.add("dense", dense);
///       }
///     };
class TANDEM_EXPORT Trackable {
 public:
  virtual ~Trackable();
  /// Adds parts and values. Called at each save and restore, under the same names each time.
  virtual void track(TrackedObject& object) = 0;
  /// Objects of one identity are one object, however often they are reached.
  virtual const void* identity() const { return this; }
  /// Calls `changed` once, when the object has got further parts: a layer that was built. Objects
  /// that get none, or say nothing, need not override it.
  virtual void on_further_parts(const std::function<void()>& changed);
};

/// A part of a checkpoint: anything that has values, or is made of things that have. Variables,
/// layers, models and optimizers are shared; iterators, counters and objects of your own that are
/// given by reference must outlive the checkpoint.
class TANDEM_EXPORT Tracked {
 public:
  struct Part;

  Tracked(const Variable& variable);
  Tracked(const random::Generator& generator);
  Tracked(data::Iterator& iterator);
  Tracked(std::int64_t& counter);
  Tracked(std::string& text);
  Tracked(Trackable& object);
  Tracked(std::shared_ptr<Trackable> object);
  template <std::derived_from<Trackable> T>
  Tracked(std::shared_ptr<T> object) : Tracked(std::shared_ptr<Trackable>(std::move(object))) {}
  /// Parts under names: `{{"encoder", encoder}, {"decoder", decoder}}`.
  Tracked(std::initializer_list<Part> parts);
  Tracked(std::vector<Part> parts);
  /// What a higher module knows how to track: layers, models, optimizers.
  template <class T>
  requires requires(const T& value) {
    { trackable_of(value) } -> std::convertible_to<std::shared_ptr<Trackable>>;
  }
  Tracked(const T& value) : Tracked(std::shared_ptr<Trackable>(trackable_of(value))) {}
  /// Elements under the names "0", "1", …
  template <class T>
  requires std::constructible_from<Tracked, T&> Tracked(std::vector<T>& list);
  template <class T>
  requires std::constructible_from<Tracked, T&> Tracked(std::map<std::string, T>& parts);

  const std::shared_ptr<Trackable>& object() const { return object_; }

 private:
  std::shared_ptr<Trackable> object_;
};

struct Tracked::Part {
  std::string name;
  Tracked value;
};

template <class T>
requires std::constructible_from<Tracked, T&> Tracked::Tracked(std::vector<T>& list)
    : Tracked([&list] {
        std::vector<Part> parts;
        for (std::size_t i = 0; i < list.size(); ++i)
          parts.push_back({std::to_string(i), Tracked(list[i])});
        return parts;
      }()) {}
template <class T>
requires std::constructible_from<Tracked, T&> Tracked::Tracked(std::map<std::string, T>& parts)
    : Tracked([&parts] {
        std::vector<Part> named;
        for (auto& [name, value] : parts) named.push_back({name, Tracked(value)});
        return named;
      }()) {}

}  // namespace tandem::train
