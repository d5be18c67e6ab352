#include "tandem/train/trackable.h"

#include "tandem/core/error.h"

namespace tandem::train {

TrackedObject::~TrackedObject() = default;
Trackable::~Trackable() = default;
void Trackable::on_further_parts(const std::function<void()>&) {}

namespace {

class VariableObject final : public Trackable {
 public:
  explicit VariableObject(Variable variable) : variable_(std::move(variable)) {}
  // Handles of one variable share its tensor.
  const void* identity() const override { return variable_.handle().impl(); }
  void track(TrackedObject& object) override {
    object.add_value({.name = variable_.name(),
                      .save = [v = variable_] { return v.read_value(); },
                      .restore = [v = variable_](const Tensor& value) { v.assign(value); },
                      .dtype = variable_.dtype(),
                      .shape = variable_.shape()});
  }

 private:
  Variable variable_;
};

// As tf.random.Generator: a variable is its state.
class GeneratorObject final : public Trackable {
 public:
  explicit GeneratorObject(random::Generator generator) : generator_(std::move(generator)) {}
  // Copies share the variable, which is an object of its own below this one.
  const void* identity() const override { return &generator_.state().name(); }
  void track(TrackedObject& object) override { object.add("_state_var", generator_.state()); }

 private:
  random::Generator generator_;
};

// A scalar that belongs to someone else.
template <class T>
class ScalarObject final : public Trackable {
 public:
  ScalarObject(T& value, const char* attribute) : value_(&value), attribute_(attribute) {}
  const void* identity() const override { return value_; }
  void track(TrackedObject& object) override {
    object.add_value(
        {.attribute = attribute_,
         .name = "",
         .save = [value = value_] { return Tensor(Array::scalar<T>(*value)); },
         .restore = [value = value_](const Tensor& tensor) { *value = tensor.item<T>(); },
         .dtype = dtype_of<T>,
         .shape = PartialShape::scalar()});
  }

 private:
  T* value_;
  const char* attribute_;
};

class IteratorState final : public Trackable {
 public:
  explicit IteratorState(data::Iterator& iterator) : iterator_(&iterator) {}
  void track(TrackedObject& object) override {
    object.add_value(
        {.attribute = "ITERATOR_STATE",
         .name = "",
         .save = [it = iterator_] { return Tensor(Array::scalar<std::string>(it->save())); },
         .restore = [it = iterator_](const Tensor& t) { it->restore(t.item<std::string>()); },
         .dtype = DType::kString,
         .shape = PartialShape::scalar()});
  }

 private:
  data::Iterator* iterator_;
};

// The state is an object below the iterator: TensorFlow takes what an iterator itself has for a
// state of its own form.
class IteratorObject final : public Trackable {
 public:
  explicit IteratorObject(data::Iterator& iterator)
      : iterator_(&iterator), state_(std::make_shared<IteratorState>(iterator)) {}
  const void* identity() const override { return iterator_; }
  void track(TrackedObject& object) override { object.add("tandem_state", state_); }

 private:
  data::Iterator* iterator_;
  std::shared_ptr<IteratorState> state_;
};

class PartsObject final : public Trackable {
 public:
  explicit PartsObject(std::vector<Tracked::Part> parts) : parts_(std::move(parts)) {}
  void track(TrackedObject& object) override {
    for (const Tracked::Part& part : parts_) object.add(part.name, part.value);
  }

 private:
  std::vector<Tracked::Part> parts_;
};

// The object is its owner's.
std::shared_ptr<Trackable> borrowed(Trackable& object) {
  return std::shared_ptr<Trackable>(std::shared_ptr<void>(), &object);
}

}  // namespace

Tracked::Tracked(const Variable& variable) {
  if (!variable.defined())
    throw InvalidArgumentError("A checkpoint was given a td::Variable that refers to nothing.");
  object_ = std::make_shared<VariableObject>(variable);
}
Tracked::Tracked(const random::Generator& generator)
    : object_(std::make_shared<GeneratorObject>(generator)) {}
Tracked::Tracked(data::Iterator& iterator) : object_(std::make_shared<IteratorObject>(iterator)) {}
Tracked::Tracked(std::int64_t& counter)
    : object_(std::make_shared<ScalarObject<std::int64_t>>(counter, "VARIABLE_VALUE")) {}
Tracked::Tracked(std::string& text)
    : object_(std::make_shared<ScalarObject<std::string>>(text, "VARIABLE_VALUE")) {}
Tracked::Tracked(Trackable& object) : object_(borrowed(object)) {}
Tracked::Tracked(std::shared_ptr<Trackable> object) : object_(std::move(object)) {
  if (!object_) throw InvalidArgumentError("A checkpoint was given a null object.");
}
Tracked::Tracked(std::initializer_list<Part> parts) : Tracked(std::vector<Part>(parts)) {}
Tracked::Tracked(std::vector<Part> parts)
    : object_(std::make_shared<PartsObject>(std::move(parts))) {}

}  // namespace tandem::train
