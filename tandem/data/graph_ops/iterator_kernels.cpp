#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/variant.h"
#include "tandem/data/graph_ops/iterator_resource.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/optional_value.h"
#include "tandem/graph/resource_manager.h"

namespace tandem::data {
namespace {

constexpr const char* kType = "iterator";

ElementSpec spec_of(const KernelContext& c) {
  const auto& types = c.attr<std::vector<DType>>("output_types");
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  if (types.size() != shapes.size()) {
    throw InvalidArgumentError(
        cat("There are ", types.size(), " output_types, but ", shapes.size(), " output_shapes."));
  }
  ElementSpec spec;
  for (std::size_t i = 0; i < types.size(); ++i) spec.push_back({types[i], shapes[i]});
  return spec;
}

void set_handle(KernelContext& c, const Ref<IteratorResource>& iterator, std::string container,
                std::string name) {
  auto info = std::make_shared<ResourceInfo>();
  info->device = c.device().name();
  info->container = std::move(container);
  info->name = std::move(name);
  info->type = kType;
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), Ref<Resource>(iterator));
  c.set_output(0, std::move(handle));
}

void make_anonymous(KernelContext& c) {
  set_handle(c, make_ref<IteratorResource>(spec_of(c)), "", "anonymous");
  if (c.num_outputs() > 1) c.set_output(1, Array::scalar(Variant()));
}

void make_named(KernelContext& c) {
  const auto& container = c.attr<std::string>("container");
  const auto& shared_name = c.attr<std::string>("shared_name");
  const std::string place = container.empty() ? kDefaultContainer : container;
  const std::string name = shared_name.empty() ? std::string(c.node_name()) : shared_name;
  const auto iterator = c.resources().lookup_or_create<IteratorResource>(
      place, name, kType, [&] { return make_ref<IteratorResource>(spec_of(c)); });
  set_handle(c, iterator, place, name);
}

Ref<IteratorResource> iterator_at(const KernelContext& c, int i) {
  const Array& value = c.input(i);
  if (value.rank() == 0) {
    const auto& handle = value.data<ResourceHandle>()[0];
    handle.check_alive();
    auto* iterator = dynamic_cast<IteratorResource*>(handle.resource());
    if (iterator) return Ref<IteratorResource>(iterator);
  }
  throw InvalidArgumentError("The handle is no iterator.");
}

void begin(KernelContext& c) { iterator_at(c, 1)->begin(from_variant(Tensor(c.input(0)))); }
void end(KernelContext& c) { iterator_at(c, 0)->end(); }

// Elements whose sizes are not what the op was declared for are the dataset's fault.
void set_components(KernelContext& c, const std::vector<Array>& components) {
  if (static_cast<int>(components.size()) != c.num_outputs()) {
    throw InvalidArgumentError(
        cat("An element has ", components.size(), " components, not ", c.num_outputs(), "."));
  }
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  for (std::size_t i = 0; i < components.size(); ++i) {
    const Array& value = components[i];
    const int output = static_cast<int>(i);
    if (value.dtype() != c.output_dtype(output) ||
        (i < shapes.size() && !shapes[i].is_compatible(value.shape()))) {
      throw InvalidArgumentError(cat("Component ", i, " of an element is ", value.dtype(),
                                     value.shape(), ", but ", c.output_dtype(output),
                                     i < shapes.size() ? shapes[i] : PartialShape::unknown(),
                                     " was asked for."));
    }
    c.set_output(output, value);
  }
}

std::vector<Array> arrays_of(const Element& element) {
  std::vector<Array> arrays;
  for (const Tensor& component : element) arrays.push_back(component.array());
  return arrays;
}

void take_next(KernelContext& c, const KernelDone& done,
               const std::function<void(Element* element)>& set) {
  try {
    iterator_at(c, 0)->next([done, set](std::exception_ptr error, Element* element) {
      try {
        if (!error) set(element);
      } catch (...) {
        error = std::current_exception();
      }
      done(error);
    });
  } catch (...) {
    done(std::current_exception());
  }
}

void next(KernelContext& c, KernelDone done) {
  take_next(c, done, [&c](Element* element) {
    if (!element) throw OutOfRangeError("End of sequence");
    set_components(c, arrays_of(*element));
  });
}

void next_optional(KernelContext& c, KernelDone done) {
  take_next(c, done, [&c](Element* element) {
    auto value = element ? make_ref<OptionalValue>(arrays_of(*element)) : make_ref<OptionalValue>();
    c.set_output(0, Array::scalar(Variant(std::move(value))));
  });
}

const KernelRegistration kAnonymous{{.op = "AnonymousIteratorV3", .run = make_anonymous}};
const KernelRegistration kAnonymousV2{{.op = "AnonymousIteratorV2", .run = make_anonymous}};
const KernelRegistration kNamed{{.op = "IteratorV2", .run = make_named}};
const KernelRegistration kMake{{.op = "MakeIterator", .run = begin}};
const KernelRegistration kDelete{{.op = "DeleteIterator", .run = end}};
const KernelRegistration kNext{{.op = "IteratorGetNext", .run_async = next}};
const KernelRegistration kNextSync{{.op = "IteratorGetNextSync", .run_async = next}};
const KernelRegistration kNextOptional{
    {.op = "IteratorGetNextAsOptional", .run_async = next_optional}};

}  // namespace
}  // namespace tandem::data
