#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"

// What range-for over a Dataset needs.
namespace tandem::data {

class TANDEM_EXPORT Dataset::ElementIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Element;
  using difference_type = std::ptrdiff_t;
  using pointer = const Element*;
  using reference = const Element&;

  ElementIterator() = default;  ///< the end
  explicit ElementIterator(Iterator iterator);
  reference operator*() const { return current_->element; }
  pointer operator->() const { return &current_->element; }
  ElementIterator& operator++();
  void operator++(int) { ++*this; }
  /// True if both have come to the end or neither has.
  bool operator==(const ElementIterator& other) const { return !current_ == !other.current_; }

 private:
  struct Current {
    Iterator iterator;
    Element element;
  };
  std::shared_ptr<Current> current_;
};

class Iterator::Cursor {
 public:
  explicit Cursor(Iterator* iterator) : iterator_(iterator) { ++*this; }
  const Element& operator*() const { return element_; }
  const Element* operator->() const { return &element_; }
  Cursor& operator++() {
    if (!iterator_->next(element_)) iterator_ = nullptr;
    return *this;
  }
  bool operator==(std::default_sentinel_t) const { return iterator_ == nullptr; }

 private:
  Iterator* iterator_;  // null: at the end
  Element element_;
};

inline Iterator::Cursor Iterator::begin() { return Cursor(this); }

template <std::size_t N>
class Dataset::Tuples {
 public:
  class Cursor {
   public:
    explicit Cursor(ElementIterator at) : at_(std::move(at)) {}
    std::array<Tensor, N> operator*() const {
      if (at_->size() != N) internal::throw_tuple_size(N, at_->size());
      std::array<Tensor, N> tuple;
      for (std::size_t i = 0; i < N; ++i) tuple[i] = (*at_)[i];
      return tuple;
    }
    Cursor& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Cursor& other) const { return at_ == other.at_; }

   private:
    ElementIterator at_;
  };
  explicit Tuples(Dataset dataset) : dataset_(std::move(dataset)) {}
  Cursor begin() const { return Cursor(dataset_.begin()); }
  Cursor end() const { return Cursor(dataset_.end()); }

 private:
  Dataset dataset_;
};

template <std::size_t N>
Dataset::Tuples<N> Dataset::tuples() const {
  return Tuples<N>(*this);
}

class Dataset::Maps {
 public:
  class Cursor {
   public:
    Cursor(ElementIterator at, const Names* names) : at_(std::move(at)), names_(names) {}
    TensorMap operator*() const { return to_map(*names_, *at_); }
    Cursor& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Cursor& other) const { return at_ == other.at_; }

   private:
    ElementIterator at_;
    const Names* names_;
  };
  explicit Maps(Dataset dataset) : dataset_(std::move(dataset)) {}
  Cursor begin() const { return {dataset_.begin(), &dataset_.names()}; }
  Cursor end() const { return {dataset_.end(), nullptr}; }

 private:
  Dataset dataset_;
};

inline Dataset::Maps Dataset::maps() const { return Maps(*this); }

}  // namespace tandem::data
