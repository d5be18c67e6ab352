#include "tandem/data/stages/element_list.h"

#include <utility>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/stages/snapshot_files.h"

namespace tandem::data {
namespace {

class ListIterator final : public IteratorBase {
 public:
  ListIterator(const std::vector<Element>& elements, const Origins* origins)
      : elements_(elements), origins_(origins) {}
  bool next(Element& out) override {
    if (at_ == elements_.size()) return false;
    out = elements_[at_++];
    return true;
  }
  Origin origin() const override { return origins_ && at_ > 0 ? origins_->at(at_ - 1) : Origin(); }
  void visit_state(StateArchive& state) override {
    state.stage("List");
    state.value(at_);
    state.require(at_ <= elements_.size(), "a window is shorter than what was read of it");
  }

 private:
  const std::vector<Element>& elements_;
  const Origins* const origins_;  // null: not known
  std::size_t at_ = 0;
};

class ListDataset final : public DatasetBase {
 public:
  ListDataset(std::shared_ptr<const std::vector<Element>> elements, ElementSpec spec,
              std::shared_ptr<const Origins> origins)
      : elements_(std::move(elements)), spec_(std::move(spec)), origins_(std::move(origins)) {}
  std::string name() const override { return "Window"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext&) const override {
    return std::make_unique<ListIterator>(*elements_, origins_.get());
  }
  const ElementSpec& element_spec() const override { return spec_; }
  std::int64_t cardinality() const override { return static_cast<std::int64_t>(elements_->size()); }
  const std::vector<Element>& elements() const { return *elements_; }
  const Origins* origins() const { return origins_.get(); }

 private:
  const std::shared_ptr<const std::vector<Element>> elements_;
  const ElementSpec spec_;
  const std::shared_ptr<const Origins> origins_;
};

class DatasetValue final : public VariantValue {
 public:
  explicit DatasetValue(Dataset dataset) : dataset_(std::move(dataset)) {}
  std::string type_name() const override { return "tandem::data::Dataset"; }
  const Dataset& dataset() const { return dataset_; }

 private:
  const Dataset dataset_;
};

// The element's dtypes and shapes; of several elements what they have in common.
ElementSpec spec_of(const std::vector<Element>& elements) {
  ElementSpec spec;
  for (const Element& element : elements) {
    for (std::size_t i = 0; i < element.size(); ++i) {
      const PartialShape shape = element[i].array().shape();
      if (&element == &elements.front()) {
        spec.push_back({element[i].dtype(), shape});
      } else if (i < spec.size()) {
        spec[i].shape = spec[i].shape.relax(shape);
      }
    }
  }
  return spec;
}

}  // namespace

Dataset element_list(std::shared_ptr<const std::vector<Element>> elements, ElementSpec spec,
                     std::shared_ptr<const Origins> origins) {
  return make_dataset<ListDataset>(std::move(elements), std::move(spec), std::move(origins));
}

Tensor to_variant(const Dataset& dataset) {
  base_of(dataset);
  return Tensor(Array::scalar(Variant(make_ref<DatasetValue>(dataset))));
}

internal::Component::operator Dataset() const { return from_variant(tensor_); }

Dataset from_variant(const Tensor& variant) {
  if (variant.dtype() == DType::kVariant && variant.rank() == 0) {
    const Variant value = variant.item<Variant>();
    if (const auto* held = value.as<DatasetValue>()) return held->dataset();
  }
  throw InvalidArgumentError(cat("from_variant needs a scalar variant that holds a dataset, got ",
                                 variant.dtype(), variant.partial_shape(), "."));
}

void save_dataset(StateArchive& state, const Variant& variant) {
  const auto* value = variant.as<DatasetValue>();
  const DatasetBase* dataset = value ? value->dataset().base().get() : nullptr;
  const auto* list = dynamic_cast<const ListDataset*>(dataset);
  const SnapshotShard* shard = dataset ? shard_of(*dataset) : nullptr;
  if (!list && !shard) {
    throw UnimplementedError(
        "A variant in an iterator's buffers cannot be saved unless it holds a window, or a shard "
        "of a snapshot.");
  }
  bool is_shard = shard != nullptr;
  state.value(is_shard);
  if (shard) {
    SnapshotShard(*shard).visit_state(state);
  } else {
    std::vector<Element> elements = list->elements();
    Origins origins = list->origins() ? *list->origins() : Origins();
    state.value(elements);
    origins.visit_state(state);
  }
}

Variant restore_dataset(StateArchive& state) {
  bool is_shard = false;
  state.value(is_shard);
  if (is_shard) {
    SnapshotShard shard;
    shard.visit_state(state);
    return Variant(make_ref<DatasetValue>(shard.read_storably()));
  }
  auto elements = std::make_shared<std::vector<Element>>();
  auto origins = std::make_shared<Origins>();
  state.value(*elements);
  origins->visit_state(state);
  ElementSpec spec = spec_of(*elements);
  return Variant(make_ref<DatasetValue>(
      element_list(std::move(elements), std::move(spec), std::move(origins))));
}

}  // namespace tandem::data
