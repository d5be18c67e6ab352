#pragma once

#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/reference.h"
#include "tandem/graph/resource_manager.h"

namespace tandem::cpu {

/// The name by which TensorFlow asks for a resource that nothing else can find.
inline constexpr std::string_view kAnonymousName = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// Sets output 0 to a scalar handle of `resource`.
template <class R>
void set_handle(KernelContext& c, Ref<R> resource, const char* type, std::string container,
                std::string name) {
  auto info = std::make_shared<ResourceInfo>();
  info->device = c.device().name();
  info->container = std::move(container);
  info->name = std::move(name);
  info->type = type;
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), Ref<Resource>(resource));
  c.set_output(0, std::move(handle));
}

/// Sets output 0 to a handle as TensorFlow 1 has it: a reference to two strings, container and
/// name.
void set_named_handle(KernelContext& c, const std::string& container, const std::string& name);

/// For ops that make a shared resource: sets output 0 to the handle of the one that has the name in
/// the attributes container and shared_name (by default the node's), made by `make` if there is
/// none. Returns it; throws InvalidArgumentError if it is of another kind.
template <class R, class Make>
R& shared_resource(KernelContext& c, const char* type, Make make) {
  const auto& container = c.attr<std::string>("container");
  const auto& shared_name = c.attr<std::string>("shared_name");
  const std::string place = container.empty() ? kDefaultContainer : container;
  const bool anonymous = shared_name == kAnonymousName;
  const std::string name =
      !anonymous && !shared_name.empty() ? shared_name : std::string(c.node_name());
  const Ref<R> resource = anonymous ? Ref<R>(make())
                                    : c.resources().template lookup_or_create<R>(
                                          place, name, type, [&] { return Ref<R>(make()); });
  if (is_ref(c.output_dtype(0))) {
    set_named_handle(c, place, name);
  } else {
    set_handle(c, resource, type, place, name);
  }
  return *resource;
}

/// What input 0 refers to, either kind of handle; null if it is nothing.
Ref<Resource> resource_input(const KernelContext& c);

/// The resource of kind R that input 0 refers to; throws InvalidArgumentError if it is none.
template <class R>
Ref<R> resource_of(const KernelContext& c, const char* type) {
  const Ref<Resource> found = resource_input(c);
  auto* resource = dynamic_cast<R*>(found.get());
  if (resource == nullptr) {
    throw InvalidArgumentError(
        cat("The handle is no ", type, ": it refers to ",
            found == nullptr ? std::string("nothing") : found->debug_string(), "."));
  }
  return Ref<R>(resource);
}

}  // namespace tandem::cpu
