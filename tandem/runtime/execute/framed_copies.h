#pragma once

#include <exception>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/ref.h"

namespace tandem {

class Device;
class Node;

/// A value of a framed run in another memory than the one it was made in. Of the calling thread
/// alone.
template <class Waiting>
struct FramedArrival final : RefCounted {
  Device* to = nullptr;  ///< null: the host
  Array copy;            ///< its place; the elements are there once it is over
  bool over = false;
  std::exception_ptr error;      ///< once it is over
  std::vector<Waiting> waiting;  ///< who asked before it was over
};

/// What goes along with a value on its way through Switch, Merge, Enter, Exit and NextIteration:
/// its copies, so that each is made once, for any reader in any iteration. Gone with the
/// last place that holds the value.
template <class Waiting>
struct FramedCopies final : RefCounted {
  FramedCopies(const Node& made_by, int its_output) : maker(made_by), output(its_output) {}
  const Node& maker;
  const int output;
  std::vector<Ref<FramedArrival<Waiting>>> arrivals;
};

}  // namespace tandem
