#include "tandem/io/resource_handle_proto.h"

#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"
#include "tandem/runtime/runtime.h"

namespace tandem::io {
namespace {

// TensorFlow's name of the C++ type, by which it distinguishes kinds of resources.
constexpr const char* kVariableType = "tensorflow::Var";

bool is_variable(const std::string& type) { return type == "Var" || type == kVariableType; }

}  // namespace

std::string write_resource_handle(const Tensor& handle) {
  const Array array = handle.array();
  if (array.dtype() != DType::kResource || array.num_elements() != 1) {
    throw InvalidArgumentError(cat("A resource handle is a scalar of dtype resource, but this is ",
                                   array.dtype(), array.shape(), "."));
  }
  const ResourceHandle& element = *array.data<ResourceHandle>();
  if (element.empty())
    throw InvalidArgumentError("An empty resource handle cannot be written: it names no resource.");
  element.check_alive();
  const ResourceInfo& info = element.info();
  proto::ResourceHandleProto message;
  message.device = info.device;
  message.container = info.container;
  message.name = info.name;
  message.maybe_type_name = is_variable(info.type) ? kVariableType : info.type;
  if (info.dtype != DType::kInvalid) {
    auto& held = message.dtypes_and_shapes.emplace_back();
    held.dtype = static_cast<proto::DataType>(static_cast<int>(info.dtype));
    encode_shape(info.shape, held.shape.make());
  }
  return proto::WireWriter::write(message);
}

Tensor read_resource_handle(std::string_view bytes) {
  proto::ResourceHandleProto message;
  proto::WireReader(bytes).read(message);
  Runtime& runtime = Runtime::current();
  runtime.check_open();
  const int place = runtime.index_of(message.device);
  if (place < 0) {
    throw NotFoundError(cat("The resource '", message.container, "/", message.name,
                            "' is on device '", message.device,
                            "', which this runtime does not have."));
  }
  const Device& device = *runtime.devices()[static_cast<std::size_t>(place)];
  const ResourceManager& manager = runtime.resources(device);
  const std::string kind =
      is_variable(message.maybe_type_name) ? "variable" : message.maybe_type_name;
  auto info = std::make_shared<ResourceInfo>();
  info->device = message.device;
  info->container = message.container;
  info->name = message.name;
  info->type = is_variable(message.maybe_type_name) ? "Var" : message.maybe_type_name;
  Ref<Resource> resource;
  if (info->type == "Var") {
    const Ref<VariableResource> variable =
        manager.lookup<VariableResource>(info->container, info->name, "variable");
    info->dtype = variable->dtype();
    info->shape = variable->shape();
    if (!message.dtypes_and_shapes.empty()) {
      const auto wanted =
          dtype_of_number(static_cast<int>(message.dtypes_and_shapes.front().dtype));
      if (!wanted || *wanted != info->dtype) {
        throw InvalidArgumentError(
            cat("The handle is of a variable of dtype ",
                dtype_number_name(static_cast<int>(message.dtypes_and_shapes.front().dtype)),
                ", but variable '", info->container, "/", info->name, "' is ", info->dtype, "."));
      }
    }
    resource = Ref<Resource>(variable);
  } else {
    resource = manager.lookup<Resource>(info->container, info->name, kind.c_str());
  }
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), std::move(resource));
  return Tensor(std::move(handle));
}

}  // namespace tandem::io
