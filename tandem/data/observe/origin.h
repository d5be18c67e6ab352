#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/never_destroyed.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// Puts into `names` what of an element may be a name, of a file say: its short scalar strings. A
/// reference to each, taken before a function takes the element over.
void note_names(const Element& element, Element& names);

/// The origin of a function's result: `names` are in what it took, which has the origin `before`.
/// Of several functions the first one's names count.
Origin joined(const Element& names, Origin before);
/// The origin of an element that is a nest of two with these origins.
Origin nested(Origin first, Origin second);
/// The origin of several joined elements, the first of which has this one.
Origin of_several(Origin first);

/// For the line of an error, ` (made of "GIF?", from "photos/7.jpg")` or ` (from "train.tfrecord",
/// at byte 52)`: the printable ones of `names`, and what these were made of. Empty if there are
/// none.
std::string origin_text(const Element& names, const Origin& before);
inline std::string origin_text(const Origin& origin) { return origin_text({}, origin); }
/// Describes an element that does not fit the first one: ` (from "b.jpg"; the first from "a.jpg")`.
std::string describe_mismatch(const Origin& unlike, const Origin& first);

/// Saves or restores an origin.
void visit(StateArchive& state, Origin& origin);

/// An element in a stage's buffer.
struct Kept {
  Element element;
  Origin origin;
};
inline void visit(StateArchive& state, Kept& kept) {
  state.value(kept.element);
  visit(state, kept.origin);
}

/// The origins of elements in a list. Takes no memory as long as none is known.
class Origins {
 public:
  /// Adds the origin of the element that is put behind `place` others.
  void add(std::size_t place, Origin origin) {
    if (!origin.names && all_.empty()) return;
    all_.resize(place);
    all_.push_back(std::move(origin));
  }
  const Origin& at(std::size_t place) const {
    static const NeverDestroyed<Origin> unknown;
    return place < all_.size() ? all_[place] : *unknown;
  }
  void clear() { all_.clear(); }
  void visit_state(StateArchive& state);

 private:
  std::vector<Origin> all_;
};

/// The origins of a batch's elements as tensors, for stages that forward these as one element: of
/// each a name, and of all of them one list of places.
class OriginTensors {
 public:
  /// The name of the next element's.
  const Tensor& add(const Origin& origin);
  /// The places of those added.
  Tensor places() const;
  /// Begins the next batch.
  void clear() {
    places_.clear();
    known_ = false;
  }
  /// That of element `number`, of which `name` and `places` were given.
  static Origin read(const Tensor& name, const Tensor& places, std::size_t number);

 private:
  const Tensor unnamed_ = Tensor(std::string());
  const Tensor no_places_ = Tensor(std::int64_t{-1});
  std::vector<std::int64_t> places_;
  bool known_ = false;
  Origin last_;  // keeps the name
};

}  // namespace tandem::data
