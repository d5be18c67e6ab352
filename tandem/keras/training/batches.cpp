#include "tandem/keras/internal/batches.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/names.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras::internal {

data::Element Examples::components() const {
  data::Element all = x.tensors();
  all.insert(all.end(), y.tensors().begin(), y.tensors().end());
  if (sample_weight.defined()) all.push_back(sample_weight);
  return all;
}

std::int64_t Examples::count() const { return x.empty() ? 0 : x.tensors().front().shape().dim(0); }

void check_examples(const Examples& examples) {
  if (examples.x.empty()) throw InvalidArgumentError("No inputs are given: x is empty.");
  std::size_t index = 0;
  std::int64_t count = -1;
  for (const Tensor& t : examples.components()) {
    const bool input = index < examples.x.tensors().size();
    const std::string who = cat(input ? "x" : "y or sample_weight", " (tensor ", index, ")");
    ++index;
    if (!t.defined()) throw InvalidArgumentError(cat(who, " is an undefined tensor."));
    if (t.is_symbolic() || t.rank() < 1) {
      throw InvalidArgumentError(
          cat(who, " must be a concrete tensor with a first axis of examples, got ", t.dtype(),
              t.partial_shape(), "."));
    }
    if (count < 0) count = t.dim(0);
    if (t.dim(0) != count) {
      throw InvalidArgumentError(
          cat("Data cardinality is ambiguous. Make sure all arrays contain the same number of "
              "samples: the first has ",
              count, ", ", who, " has ", t.dim(0), "."));
    }
  }
  if (count == 0) throw InvalidArgumentError("There are no examples: the tensors have 0 rows.");
}

std::pair<Examples, Examples> split_examples(const Examples& examples, double fraction) {
  if (!(fraction > 0 && fraction < 1)) {
    throw InvalidArgumentError(
        cat("validation_split must lie between 0 and 1, got ", fraction, "."));
  }
  const std::int64_t count = examples.count();
  const auto at =
      static_cast<std::int64_t>(std::floor(static_cast<double>(count) * (1 - fraction)));
  if (at == 0 || at == count) {
    throw InvalidArgumentError(cat(
        "Training data contains ", count,
        " samples, which is not sufficient to split it into "
        "a validation and training set as specified by `validation_split=",
        fraction, "`. Either provide more data, or a different value for the `validation_split`."));
  }
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const auto rows = [&](const TensorList& list) {
      std::vector<Tensor> parts;
      for (const Tensor& t : list.tensors()) parts.emplace_back(t.array().slice_outer(begin, end));
      return TensorList(std::move(parts));
    };
    Examples some{rows(examples.x), rows(examples.y), {}};
    if (examples.sample_weight.defined())
      some.sample_weight = examples.sample_weight.array().slice_outer(begin, end);
    return some;
  };
  return {part(0, at), part(at, count)};
}

data::Dataset batches_of(const Examples& examples, std::int64_t batch_size, bool shuffle) {
  if (batch_size <= 0)
    throw InvalidArgumentError(cat("batch_size must be positive, got ", batch_size, "."));
  data::Dataset rows = data::from_tensor_slices(examples.components());
  if (shuffle) rows = rows.shuffle(examples.count());
  return rows.batch(batch_size);
}

Tensor weights_of_classes(const Tensor& labels,
                          const std::map<std::int64_t, double>& class_weight) {
  Tensor classes = labels;
  if (labels.rank() > 1) {
    classes = labels.dim(-1) > 1 ? argmax(labels, -1)
                                 : Tensor(labels.array().reshape(Shape{labels.num_elements()}));
  }
  const std::vector<std::int64_t> numbers = cast(classes, int64).to_vector<std::int64_t>();
  std::vector<float> weights;
  weights.reserve(numbers.size());
  for (const std::int64_t number : numbers) {
    const auto found = class_weight.find(number);
    weights.push_back(found == class_weight.end() ? 1.0f : static_cast<float>(found->second));
  }
  return Tensor::from(weights, classes.shape());
}

namespace {

std::size_t index_of(const std::vector<std::string>& given, const std::string& name,
                     const char* things, const ModelImpl& model) {
  const auto found = std::find(given.begin(), given.end(), name);
  if (found == given.end()) {
    throw InvalidArgumentError(
        cat("Model '", model.name(), "' has ", things, " '", name,
            "', which is missing in the data. The names given are: ", join(given), "."));
  }
  return static_cast<std::size_t>(found - given.begin());
}

// A model whose inputs have no names takes them in the order of the given ones.
TensorList in_order(const TensorList& list, const std::vector<std::string>& wanted,
                    const char* things, const ModelImpl& model) {
  if (list.names().empty()) return list;
  if (wanted.empty() || (wanted.size() == 1 && list.tensors().size() == 1)) return list.tensors();
  std::vector<Tensor> tensors;
  for (const std::string& name : wanted)
    tensors.push_back(list.tensors()[index_of(list.names(), name, things, model)]);
  return tensors;
}

// The components of an element that belong to x, y or the sample weights, by name if they have one.
struct Part {
  std::vector<std::size_t> components;
  std::vector<std::string> names;
};

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Components of a map are in the order of their names, which says nothing about what they are.
[[noreturn]] void throw_no_parts(const data::Names& names) {
  throw InvalidArgumentError(
      cat("The dataset's elements are maps (", join(names),
          "), but a model is given x, y and sample_weight by position. Say which is which: "
          "dataset.map([](td::data::TensorMap e) { return std::pair(e.at(\"",
          names.front(), "\"), e.at(\"", names.back(), "\")); })."));
}

// Components by part: "0/image" is x's image, "1" the only label. A map by itself is x.
std::vector<Part> parts_of(const data::Names& names, const ModelImpl& model) {
  std::vector<Part> parts;
  bool plain = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t slash = names[i].find('/');
    const std::string first = names[i].substr(0, slash);
    if (!is_number(first) || first.size() > 1) {
      plain = true;
      break;
    }
    const auto part = static_cast<std::size_t>(first[0] - '0');
    if (parts.size() <= part) parts.resize(part + 1);
    parts[part].components.push_back(i);
    if (slash != std::string::npos) parts[part].names.push_back(names[i].substr(slash + 1));
  }
  if (!plain) return parts;
  const std::vector<std::string> inputs = model.input_names();
  for (const std::string& input : inputs) {
    if (std::find(names.begin(), names.end(), input) == names.end()) throw_no_parts(names);
  }
  if (inputs.empty() && static_cast<int>(names.size()) != model.num_inputs()) throw_no_parts(names);
  Part x{.components = {}, .names = names};
  for (std::size_t i = 0; i < names.size(); ++i) x.components.push_back(i);
  return {x};
}

// Where each tensor of a batch stands in an element.
std::vector<std::size_t> order_of(const data::Names& names, const ModelImpl& model) {
  if (names.size() < 2) return {};
  std::vector<std::size_t> order;
  const std::vector<Part> parts = parts_of(names, model);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    const std::vector<std::string> wanted = p == 0 ? model.input_names() : model.output_names();
    const bool by_name = part.names.size() == part.components.size() && !wanted.empty() &&
                         (wanted.size() > 1 || part.names.size() > 1);
    if (!by_name) {
      order.insert(order.end(), part.components.begin(), part.components.end());
      continue;
    }
    for (const std::string& name : wanted) {
      order.push_back(
          part.components[index_of(part.names, name, p == 0 ? "an input" : "an output", model)]);
    }
  }
  return order;
}

}  // namespace

Examples arrange(const ModelImpl& model, const Examples& given) {
  return {in_order(given.x, model.input_names(), "an input", model),
          in_order(given.y, model.output_names(), "an output", model), given.sample_weight};
}

BatchReader::BatchReader(data::Dataset dataset, std::optional<std::int64_t> steps,
                         const ModelImpl& model)
    : dataset_(std::move(dataset)), limit_(steps) {
  if (limit_ && *limit_ <= 0)
    throw InvalidArgumentError(cat("The number of steps must be positive, got ", *limit_, "."));
  order_ = order_of(dataset_.names(), model);
  const std::int64_t cardinality = dataset_.cardinality();
  if (cardinality == data::kInfinite && !limit_) {
    throw InvalidArgumentError(
        "The dataset has no end. Say how many batches an epoch has with `steps_per_epoch` (or "
        "`steps`), or leave out repeat().");
  }
  steps_ = limit_ ? *limit_ : cardinality < 0 ? -1 : cardinality;
}

void BatchReader::begin() {
  count_ = 0;
  if (limit_ && iterator_) return;  // goes on
  iterator_.emplace(dataset_.iterator({.observe = observe_}));
  fresh_ = true;
}

std::string BatchReader::save() { return iterator_ ? iterator_->save() : ""; }

void BatchReader::restore(const std::string& saved, std::int64_t count) {
  iterator_.reset();
  if (!saved.empty()) {
    iterator_.emplace(dataset_.iterator({.observe = observe_}));
    iterator_->restore(saved);
  }
  fresh_ = false;
  count_ = count;
}

bool BatchReader::next(data::Element& batch) {
  if (limit_ && count_ == *limit_) return false;
  while (!iterator_->next(batch)) {
    if (!limit_ || fresh_) return false;
    if (count_ > 0 && !warned_) {
      warned_ = true;
      std::cerr << "warning: the dataset ran out of data in step " << count_ + 1 << " of "
                << *limit_
                << " and starts over. Make sure that it gives at least `steps_per_epoch * epochs` "
                   "batches: append .repeat(), or ask for fewer steps.\n";
    }
    iterator_.emplace(dataset_.iterator({.observe = observe_}));
    fresh_ = true;
  }
  fresh_ = false;
  ++count_;
  if (!order_.empty()) {
    data::Element ordered;
    for (const std::size_t i : order_) ordered.push_back(batch[i]);
    batch = std::move(ordered);
  }
  return true;
}

}  // namespace tandem::keras::internal
