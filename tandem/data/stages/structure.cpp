#include "tandem/data/structure.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/runtime/execute/undefined_hint.h"

namespace tandem::data {
namespace {

std::string listed(const Names& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "'" : ", '") + name + "'";
  return all.empty() ? "none" : all;
}

std::string keys(const TensorMap& map) {
  Names names;
  for (const auto& component : map) names.push_back(component.first);
  return listed(names);
}

// The input's elements, whose components have names: given, or those of a function's results, which
// are known once it has been called.
class NamedDataset final : public UnaryDataset {
 public:
  NamedDataset(DatasetRef input, std::shared_ptr<internal::ResultNames> names)
      : UnaryDataset(std::move(input)), names_(std::move(names)) {}
  std::string name() const override { return "Named"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return input().iterator(context);
  }
  const Names& names() const override {
    if (!names_->known()) input().element_spec();  // calls the function
    return names_->get();
  }

 private:
  const std::shared_ptr<internal::ResultNames> names_;
};

}  // namespace

Tensor& TensorMap::at(const std::string& name) {
  return const_cast<Tensor&>(std::as_const(*this).at(name));
}

const Tensor& TensorMap::at(const std::string& name) const {
  const auto found = find(name);
  if (found == end()) {
    throw NotFoundError(cat("There is no component '", name, "'; there are ", keys(*this), "."));
  }
  return found->second;
}

Tensor& TensorMap::operator[](const std::string& name) {
  const auto found = find(name);
  if (found != end()) return found->second;
  undefined_tensor_hint() = cat(" The last name asked of a TensorMap that it did not have was '",
                                name, "'; it had ", keys(*this), ".");
  return try_emplace(name).first->second;
}

TensorMap to_map(const Names& names, const Element& element) {
  undefined_tensor_hint().clear();  // of another element's function
  TensorMap map;
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (i >= names.size() || names[i].empty()) {
      throw InvalidArgumentError(
          cat("The elements have ", element.size(), " components, of which number ", i,
              " has no name (names: ", listed(names),
              "). Give them names with from_tensor_slices of a map, or a map function that returns "
              "a td::data::TensorMap."));
    }
    map.insert_or_assign(names[i], element[i]);
  }
  return map;
}

namespace internal {

void put_named(io::ParsedExamples found, const std::string& path, Names& names, Element& out) {
  const std::string inside = path.empty() ? "" : path + "/";
  put_named(std::move(found.dense), path, names, out);
  for (auto& [name, sparse] : found.sparse) {
    put_named(std::move(sparse.indices), inside + name + "/indices", names, out);
    put_named(std::move(sparse.values), inside + name + "/values", names, out);
    put_named(std::move(sparse.dense_shape), inside + name + "/dense_shape", names, out);
  }
  for (auto& [name, ragged] : found.ragged) {
    put_named(std::move(ragged.values), inside + name + "/values", names, out);
    if (ragged.row_splits.defined())
      put_named(std::move(ragged.row_splits), inside + name + "/row_splits", names, out);
  }
}

bool ResultNames::known() const {
  std::lock_guard lock(mutex_);
  return known_;
}

const Names& ResultNames::get() const {
  std::lock_guard lock(mutex_);
  return names_;  // does not change any more
}

void ResultNames::set(Names names) {
  std::lock_guard lock(mutex_);
  if (known_) {
    if (names == names_) return;
    throw InvalidArgumentError(cat("A function gave other names before: first ", listed(names_),
                                   ", now ", listed(names), "."));
  }
  names_ = std::move(names);
  known_ = true;
}

TensorMap map_part(const Names& names, const Element& element, std::size_t index,
                   std::size_t count) {
  if (count == 1) return to_map(names, element);
  const std::string prefix = std::to_string(index) + "/";
  TensorMap map;
  for (std::size_t i = 0; i < element.size() && i < names.size(); ++i) {
    if (names[i].starts_with(prefix)) map[names[i].substr(prefix.size())] = element[i];
  }
  if (map.empty()) {
    throw InvalidArgumentError(cat("The function takes a map as parameter ", index,
                                   ", but the elements have none there: their components are ",
                                   listed(names), "."));
  }
  return map;
}

Tensor tensor_part(const Names& names, const Element& element, std::size_t index) {
  const auto at = std::find(names.begin(), names.end(), std::to_string(index));
  const auto place = static_cast<std::size_t>(at - names.begin());
  if (place >= element.size()) {
    throw InvalidArgumentError(cat("The function takes a tensor as parameter ", index,
                                   ", but the elements have none there: their components are ",
                                   listed(names), "."));
  }
  return element[place];
}

const Names& names_of(const DatasetBase& dataset) { return dataset.names(); }

Dataset with_names(const Dataset& dataset, std::shared_ptr<ResultNames> names) {
  return make_dataset<NamedDataset>(base_of(dataset), std::move(names));
}

}  // namespace internal

namespace {

Dataset named(const Dataset& dataset, const TensorMap& components) {
  Names all;
  for (const auto& component : components) all.push_back(component.first);
  auto names = std::make_shared<internal::ResultNames>();
  names->set(std::move(all));
  return internal::with_names(dataset, std::move(names));
}

std::vector<Tensor> values(const TensorMap& components) {
  std::vector<Tensor> all;
  for (const auto& component : components) all.push_back(component.second);
  return all;
}

}  // namespace

Dataset internal::slices_of(const TensorMap& components) {
  return named(from_tensor_slices(values(components)), components);
}

Dataset from_tensor_slices(std::initializer_list<TensorMap::value_type> components) {
  return internal::slices_of(components);
}

Dataset from_tensors(std::initializer_list<TensorMap::value_type> components) {
  const TensorMap all(components);
  return named(from_tensors(values(all)), all);
}

Names zipped_names(const std::vector<DatasetRef>& inputs) {
  const bool any = std::any_of(inputs.begin(), inputs.end(),
                               [](const DatasetRef& input) { return !input->names().empty(); });
  if (!any) return {};
  Names all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string number = std::to_string(i);
    const Names& names = inputs[i]->names();
    for (const std::string& name : names) all.push_back(number + "/" + name);
    if (!names.empty()) continue;
    const std::size_t count = inputs[i]->element_spec().size();
    for (std::size_t k = 0; k < count; ++k) {
      all.push_back(count == 1 ? number : number + "/" + std::to_string(k));
    }
  }
  return all;
}

const Names& Dataset::names() const { return base_of(*this)->names(); }

Dataset zip(std::initializer_list<std::pair<const std::string, Dataset>> datasets) {
  std::vector<Dataset> all;
  Names outer;
  for (const auto& [name, dataset] : std::map<std::string, Dataset>(datasets)) {
    all.push_back(dataset);
    const Names& inner = dataset.names();
    for (const std::string& path : inner) outer.push_back(name + "/" + path);
    if (!inner.empty()) continue;
    const std::size_t count = dataset.element_spec().size();
    for (std::size_t k = 0; k < count; ++k) {
      outer.push_back(count == 1 ? name : name + "/" + std::to_string(k));
    }
  }
  auto names = std::make_shared<internal::ResultNames>();
  names->set(std::move(outer));
  return internal::with_names(zip(std::move(all)), std::move(names));
}

}  // namespace tandem::data
