#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "tandem/core/array.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/ref.h"
#include "tandem/device/device.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// A value that is not ready yet, or never will be.
struct LateValue {
  Ref<Event> event;          ///< null once done
  std::exception_ptr error;  ///< why it failed
};

/// What a Tensor points to. Concrete if `node.node` is null.
class TensorImpl final : public RefCounted {
 public:
  explicit TensorImpl(Array value) : array(std::move(value)) {}
  TensorImpl() = default;

  Array array;
  std::shared_ptr<Device> device;   ///< null: the host, which needs no keeping
  std::unique_ptr<LateValue> late;  ///< null: ready
  Output node;                      ///< symbolic tensors: the graph's output that makes the value
  std::weak_ptr<const void> graph;  ///< symbolic tensors: expires with the node
  bool watched = false;             ///< handle of a trainable variable: tapes watch it unasked
  std::uint64_t trace_id = 0;       ///< the trace during which the tensor was made; 0: none

  bool symbolic() const { return node.node != nullptr; }
  /// The node of a symbolic tensor. Throws FailedPreconditionError if its graph is gone.
  const Node& symbol() const {
    if (graph.expired()) throw_graph_gone();
    return *node.node;
  }

  static void* operator new(std::size_t bytes) { return host_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) { host_free(block, bytes); }

 private:
  [[noreturn]] static void throw_graph_gone();
};

}  // namespace tandem
