#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tandem/core/array.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/ref.h"
#include "tandem/device/device.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// What a Tensor points to. Concrete if `node.node` is null.
class TensorImpl final : public RefCounted {
 public:
  explicit TensorImpl(Array value) : array(std::move(value)) {}
  TensorImpl() = default;

  Array array;
  std::shared_ptr<Device> device;  ///< null: the host, which needs no keeping
  /// Null: the value was there from the start. Else done once it is; its `wait` throws why it never
  /// will be.
  Ref<Event> pending;
  Output node;                      ///< symbolic tensors: the graph's output that makes the value
  std::weak_ptr<const void> graph;  ///< symbolic tensors: expires with the node
  bool watched = false;             ///< handle of a trainable variable: tapes watch it unasked
  std::uint64_t trace_id = 0;       ///< the trace during which the tensor was made; 0: none

  /// The elements where the host can read them: `array`, or a copy of it made at the first look.
  const Array& host_array() const {
    if (array.on_host() && (!array.buffer() || array.buffer()->computed())) return array;
    if (const Array* copy = host_copy_.load(std::memory_order_acquire)) return *copy;
    return copy_for_host();
  }

  bool symbolic() const { return node.node != nullptr; }
  /// The node of a symbolic tensor. Throws FailedPreconditionError if its graph is gone.
  const Node& symbol() const {
    if (graph.expired()) throw_graph_gone();
    return *node.node;
  }

  ~TensorImpl() override { delete host_copy_.load(std::memory_order_relaxed); }

  static void* operator new(std::size_t bytes) { return host_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) { host_free(block, bytes); }

 private:
  [[noreturn]] static void throw_graph_gone();
  const Array& copy_for_host() const;

  mutable std::atomic<const Array*> host_copy_{nullptr};
};

}  // namespace tandem
