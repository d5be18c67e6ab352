// The ops of queues. Those that may have to wait are asynchronous.

#include <algorithm>
#include <random>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/state/queue.h"
#include "tandem/kernels/cpu/state/resource_op.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// ---- Making ----

Queue::Kind kind_of(const KernelContext& c, bool priority) {
  Queue::Kind kind;
  // Whichever version made it, it is the same queue.
  const std::string& op = c.op().name;
  kind.type = op.ends_with("V2") ? op.substr(0, op.size() - 2) : op;
  kind.dtypes = c.attr<std::vector<DType>>("component_types");
  kind.shapes = c.attr<std::vector<PartialShape>>("shapes");
  kind.capacity = std::max<std::int64_t>(c.attr<std::int64_t>("capacity"), -1);
  if (!kind.shapes.empty() && kind.shapes.size() != kind.dtypes.size()) {
    throw InvalidArgumentError(cat("shapes must be empty or one for each of the ",
                                   kind.dtypes.size(), " components, but are ", kind.shapes.size(),
                                   "."));
  }
  if (priority) {
    if (kind.shapes.size() == kind.dtypes.size()) {
      kind.shapes.insert(kind.shapes.begin(), PartialShape::scalar());
    }
    kind.dtypes.insert(kind.dtypes.begin(), DType::kInt64);
  }
  return kind;
}

template <class MakeStore>
void make_queue(KernelContext& c, const Queue::Kind& kind, MakeStore store) {
  const Queue& queue =
      shared_resource<Queue>(c, "queue", [&] { return make_ref<Queue>(kind, store()); });
  if (!(queue.kind() == kind)) {
    throw InvalidArgumentError(
        cat("There is a queue of this name already, but of other components, shapes or capacity: ",
            queue.debug_string()));
  }
}

void make_fifo(KernelContext& c) { make_queue(c, kind_of(c, false), fifo_store); }

void make_padding(KernelContext& c) {
  Queue::Kind kind = kind_of(c, false);
  kind.pads = true;
  if (kind.shapes.empty()) {
    throw InvalidArgumentError("A PaddingFIFOQueue needs the shapes of its components.");
  }
  for (const PartialShape& shape : kind.shapes) {
    if (!shape.has_rank()) {
      throw InvalidArgumentError("A PaddingFIFOQueue needs shapes of known rank.");
    }
  }
  make_queue(c, kind, fifo_store);
}

void make_shuffled(KernelContext& c) {
  Queue::Kind kind = kind_of(c, false);
  kind.stays = c.attr<std::int64_t>("min_after_dequeue");
  if (kind.stays < 0 || (kind.capacity >= 0 && kind.stays >= kind.capacity)) {
    throw InvalidArgumentError(cat("min_after_dequeue ", kind.stays,
                                   " must be at least 0 and below the capacity ", kind.capacity));
  }
  auto seed = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed"));
  auto seed2 = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed2"));
  if (seed == 0 && seed2 == 0) {
    std::random_device chance;
    seed = chance();
    seed2 = chance();
  }
  make_queue(c, kind, [&] { return shuffled_store(seed, seed2); });
}

void make_priority(KernelContext& c) {
  Queue::Kind kind = kind_of(c, true);
  kind.gives_fewer = false;  // as TensorFlow's
  make_queue(c, kind, priority_store);
}

// ---- Putting ----

Ref<Queue> queue(const KernelContext& c) { return resource_of<Queue>(c, "queue"); }

void require_no_timeout(const KernelContext& c) {
  if (c.attr<std::int64_t>("timeout_ms") != -1) {
    // TensorFlow's own refusal and text; no issue asks for timeouts.
    throw InvalidArgumentError("Timeout not supported yet.");
  }
}

void require_component(const Queue::Kind& kind, int i, DType dtype, const PartialShape& shape) {
  const auto k = static_cast<std::size_t>(i);
  if (kind.dtypes[k] != dtype) {
    throw InvalidArgumentError(cat("Type mismatch in tuple component ", i, ". Expected ",
                                   kind.dtypes[k], ", got ", dtype));
  }
  if (!kind.shapes.empty() && !kind.shapes[k].is_compatible(shape)) {
    throw InvalidArgumentError(cat("Shape mismatch in tuple component ", i, ". Expected ",
                                   kind.shapes[k], ", got ", shape));
  }
}

void require_components(const Queue::Kind& kind, std::size_t count) {
  if (kind.dtypes.size() != count) {
    throw InvalidArgumentError(
        cat("Wrong number of components in tuple. Expected ", kind.dtypes.size(), ", got ", count));
  }
}

void put(KernelContext& c, KernelDone done) {
  require_no_timeout(c);
  const Ref<Queue> to = queue(c);
  require_components(to->kind(), static_cast<std::size_t>(c.num_inputs() - 1));
  Tuple element;
  for (int i = 1; i < c.num_inputs(); ++i) {
    require_component(to->kind(), i - 1, c.input(i).dtype(), c.input(i).shape());
    element.push_back(c.input(i));
  }
  std::vector<Tuple> elements;
  elements.push_back(std::move(element));
  to->put(std::move(elements), c.cancellation(), std::move(done));
}

// Row i of an array, in memory of its own.
Array row_of(const Array& all, const Shape& shape, std::int64_t i) {
  Array row(all.dtype(), shape);
  with_element(all.dtype(), [&]<class T>() {
    copy_elements(static_cast<T*>(row.raw_data()),
                  static_cast<const T*>(all.raw_data()) + i * shape.num_elements(),
                  shape.num_elements());
  });
  return row;
}

void put_many(KernelContext& c, KernelDone done) {
  require_no_timeout(c);
  const Ref<Queue> to = queue(c);
  require_components(to->kind(), static_cast<std::size_t>(c.num_inputs() - 1));
  std::vector<Tuple> elements;
  for (int i = 1; i < c.num_inputs(); ++i) {
    const Array& all = c.input(i);
    if (all.rank() == 0) {
      throw InvalidArgumentError(cat("Component ", i - 1, " must have a first axis to cut along."));
    }
    if (i == 1) elements.resize(static_cast<std::size_t>(all.shape()[0]));
    if (all.shape()[0] != static_cast<std::int64_t>(elements.size())) {
      throw InvalidArgumentError(
          cat("All input tensors must have the same size in the 0th "
              "dimension. Component ",
              i - 1, " has ", all.shape()[0], ", and should have ", elements.size()));
    }
    const Shape shape(all.shape().dims().subspan(1));
    require_component(to->kind(), i - 1, all.dtype(), shape);
    for (std::size_t k = 0; k < elements.size(); ++k) {
      elements[k].push_back(row_of(all, shape, static_cast<std::int64_t>(k)));
    }
  }
  to->put(std::move(elements), c.cancellation(), std::move(done));
}

// ---- Taking ----

void require_types(const KernelContext& c, const Queue::Kind& kind) {
  if (c.attr<std::vector<DType>>("component_types") != kind.dtypes) {
    throw InvalidArgumentError("The queue's components have other types than those asked for.");
  }
}

void take(KernelContext& c, KernelDone done) {
  require_no_timeout(c);
  const Ref<Queue> from = queue(c);
  require_types(c, from->kind());
  from->take(1, false, c.cancellation(),
             [&c, done = std::move(done)](std::exception_ptr error, std::vector<Tuple> got) {
               if (!error) {
                 for (int i = 0; i < c.num_outputs(); ++i) {
                   c.set_output(i, std::move(got[0][static_cast<std::size_t>(i)]));
                 }
               }
               done(error);
             });
}

// Copies an array into the corner of a larger one of the same rank, from `axis` on.
template <class T>
void copy_corner(const Shape& small, const Shape& large, int axis, const T* from, T* to) {
  if (axis == small.rank()) {
    *to = *from;
    return;
  }
  const std::int64_t from_step = small.product(axis + 1, small.rank());
  const std::int64_t to_step = large.product(axis + 1, large.rank());
  for (std::int64_t i = 0; i < small[axis]; ++i) {
    copy_corner(small, large, axis + 1, from + i * from_step, to + i * to_step);
  }
}

// Component i of all elements as one array, filled up with zeros where they are smaller.
Array stacked(const Queue::Kind& kind, const std::vector<Tuple>& elements, std::size_t i) {
  Shape shape;
  if (elements.empty()) {
    std::vector<std::int64_t> dims = kind.shapes[i].dims();
    for (std::int64_t& size : dims) size = std::max<std::int64_t>(size, 0);
    shape = Shape(dims);
  } else {
    shape = elements[0][i].shape();
    for (const Tuple& element : elements) {
      for (int k = 0; k < shape.rank(); ++k) {
        shape.set_dim(k, std::max(shape[k], element[i].shape()[k]));
      }
    }
  }
  Shape whole{static_cast<std::int64_t>(elements.size())};
  for (const std::int64_t size : shape.dims()) whole.add_dim(size);
  Array out(kind.dtypes[i], whole);
  with_element(out.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    for (const Tuple& element : elements) {
      const Array& part = element[i];
      const T* from = static_cast<const T*>(part.raw_data());
      if (part.shape() == shape) {
        copy_elements(to, from, shape.num_elements());
      } else {
        clear_elements(to, shape.num_elements());
        copy_corner(part.shape(), shape, 0, from, to);
      }
      to += shape.num_elements();
    }
  });
  return out;
}

void take_several(KernelContext& c, bool fewer, KernelDone done) {
  require_no_timeout(c);
  const Ref<Queue> from = queue(c);
  const Queue::Kind& kind = from->kind();
  require_types(c, kind);
  if (c.input(1).rank() != 0) {
    throw InvalidArgumentError(cat("n must be a scalar, but has shape ", c.input(1).shape()));
  }
  const std::int32_t count = *c.input(1).data<std::int32_t>();
  if (count < 0) {
    throw InvalidArgumentError(cat(c.op().name, " requested ", count, " < 0 elements"));
  }
  bool known = !kind.shapes.empty();
  for (const PartialShape& shape : kind.shapes) {
    known = known && (kind.pads ? shape.has_rank() : shape.is_fully_known());
  }
  if (!known) {
    throw InvalidArgumentError(
        cat(c.op().name, " requires the components to have specified shapes."));
  }
  const auto finish = [&c, from, done = std::move(done)](std::exception_ptr error,
                                                         const std::vector<Tuple>& got) {
    try {
      for (int i = 0; i < c.num_outputs() && !error; ++i) {
        c.set_output(i, stacked(from->kind(), got, static_cast<std::size_t>(i)));
      }
    } catch (...) {
      error = std::current_exception();
    }
    done(error);
  };
  if (count == 0) return finish(nullptr, {});
  from->take(count, fewer, c.cancellation(), finish);
}

void take_many(KernelContext& c, KernelDone done) { take_several(c, false, std::move(done)); }
void take_up_to(KernelContext& c, KernelDone done) { take_several(c, true, std::move(done)); }

// ---- The rest ----

void close(KernelContext& c) { queue(c)->close(c.attr<bool>("cancel_pending_enqueues")); }
void size(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() = static_cast<std::int32_t>(queue(c)->size());
}
void is_closed(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<bool>() = queue(c)->closed();
}

const KernelRegistration kFifo{{.op = "FIFOQueueV2", .run = make_fifo}};
const KernelRegistration kFifoByName{{.op = "FIFOQueue", .run = make_fifo}};
const KernelRegistration kPadding{{.op = "PaddingFIFOQueueV2", .run = make_padding}};
const KernelRegistration kPaddingByName{{.op = "PaddingFIFOQueue", .run = make_padding}};
const KernelRegistration kShuffled{{.op = "RandomShuffleQueueV2", .run = make_shuffled}};
const KernelRegistration kShuffledByName{{.op = "RandomShuffleQueue", .run = make_shuffled}};
const KernelRegistration kPriority{{.op = "PriorityQueueV2", .run = make_priority}};
const KernelRegistration kPriorityByName{{.op = "PriorityQueue", .run = make_priority}};
const KernelRegistration kPut{{.op = "QueueEnqueueV2", .run_async = put}};
const KernelRegistration kPutByName{{.op = "QueueEnqueue", .run_async = put}};
const KernelRegistration kPutMany{{.op = "QueueEnqueueManyV2", .run_async = put_many}};
const KernelRegistration kPutManyByName{{.op = "QueueEnqueueMany", .run_async = put_many}};
const KernelRegistration kTake{{.op = "QueueDequeueV2", .run_async = take}};
const KernelRegistration kTakeByName{{.op = "QueueDequeue", .run_async = take}};
const KernelRegistration kTakeMany{{.op = "QueueDequeueManyV2", .run_async = take_many}};
const KernelRegistration kTakeManyByName{{.op = "QueueDequeueMany", .run_async = take_many}};
const KernelRegistration kTakeUpTo{{.op = "QueueDequeueUpToV2", .run_async = take_up_to}};
const KernelRegistration kTakeUpToByName{{.op = "QueueDequeueUpTo", .run_async = take_up_to}};
const KernelRegistration kClose{{.op = "QueueCloseV2", .run = close}};
const KernelRegistration kCloseByName{{.op = "QueueClose", .run = close}};
const KernelRegistration kSize{{.op = "QueueSizeV2", .run = size}};
const KernelRegistration kSizeByName{{.op = "QueueSize", .run = size}};
const KernelRegistration kIsClosed{{.op = "QueueIsClosedV2", .run = is_closed}};
const KernelRegistration kIsClosedByName{{.op = "QueueIsClosed", .run = is_closed}};

}  // namespace
}  // namespace tandem::cpu
