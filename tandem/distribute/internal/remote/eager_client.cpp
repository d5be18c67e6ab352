#include "tandem/distribute/internal/remote/eager_client.h"

#include <algorithm>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/device_spec.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/task/assumed_devices.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem::distribute {
namespace {

constexpr const char* kKeepAlive = "/tensorflow.eager.EagerService/KeepAlive";
constexpr const char* kCloseContext = "/tensorflow.eager.EagerService/CloseContext";
constexpr auto kPatience = std::chrono::seconds(5);

// SendTensorItem.tensors and QueueItem.send_tensor: the tensor stays beside the message.
Bytes send_tensor_item(std::int64_t operation, const std::string& device, const Array& value) {
  proto::SendTensorItem head;
  head.op_id = operation;
  head.device_name = device;
  Bytes item = write_message(head);
  append_tensor_field(item, 2, value);
  std::string tag(1, static_cast<char>(3 << 3 | 2));
  for (std::size_t size = item.size();; size >>= 7) {
    tag += static_cast<char>(size >= 0x80 ? (size & 0x7f) | 0x80 : size);
    if (size < 0x80) break;
  }
  Bytes whole(std::move(tag));
  whole.append(std::move(item));
  return whole;
}

// Memory for a value that may be fetched later; a resource's handle says where it is.
Array place_for(DType dtype, const Shape& shape, const std::string& device,
                const std::string& name) {
  if (dtype != DType::kResource) return Array(dtype, shape);
  auto info = std::make_shared<ResourceInfo>();
  info->device = device;
  info->name = name;
  Array handle(DType::kResource, Shape{});
  handle.data<ResourceHandle>()[0] = ResourceHandle(std::move(info), {});
  return handle;
}

Shape shape_of(const proto::TensorShape& message) {
  std::vector<std::int64_t> dims;
  for (const proto::TensorDim& dim : message.dim) dims.push_back(dim.size);
  return Shape(dims);
}

}  // namespace

EagerClient::EagerClient(std::vector<std::shared_ptr<RemoteTask>> tasks,
                         std::map<std::string, std::string> addresses)
    : tasks_(std::move(tasks)), addresses_(std::move(addresses)) {}

void EagerClient::add_devices(DeviceSet& devices) const {
  const DeviceModel host = devices.devices.front();
  for (const auto& task : tasks_) add_assumed_devices(devices, task->devices(), host);
  assume_network(devices, addresses_);
}

bool EagerClient::has_task(const DeviceSpec& device) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    return device.task_spec().matches(DeviceSpec::parse(task->name()));
  });
}

void EagerClient::keep_alive(std::chrono::milliseconds every) {
  const MutexLock lock(mutex_);
  if (closed_ || every.count() <= 0) return;
  timer_ = Timer(std::chrono::steady_clock::now() + every, [weak = weak_from_this(), every] {
    const std::shared_ptr<EagerClient> self = weak.lock();
    if (!self) return;
    for (const auto& task : self->tasks_) {
      proto::KeepAliveRequest request;
      request.context_id = static_cast<io::proto::Fixed64>(task->context());
      task->channel().call(kKeepAlive, write_message(request), {.timeout = kPatience},
                           [](const Status&, const Bytes&) {});
    }
    self->keep_alive(every);
  });
}

void EagerClient::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    timer_ = Timer();
  }
  for (const auto& task : tasks_) {
    task->close();
    proto::CloseContextRequest request;
    request.context_id = static_cast<io::proto::Fixed64>(task->context());
    try {
      blocking_call(task->channel(), kCloseContext, write_message(request), {.timeout = kPatience});
    } catch (const Error&) {  // the task is gone, and the context with it
    }
  }
}

std::shared_ptr<RemoteTask> EagerClient::task_of(const std::string& device) const {
  for (const auto& task : tasks_) {
    if (task->name() == task_of_device(device)) return task;
  }
  throw InvalidArgumentError(cat("'", device, "' is a device of no task of the cluster."));
}

proto::RemoteTensorHandle EagerClient::give(RemoteTask& task, const std::string& device,
                                            const Tensor& input, bool to_function,
                                            std::vector<proto::RemoteTensorHandle>& given) {
  if (!input.defined()) throw InvalidArgumentError("An input is an undefined tensor.");
  proto::RemoteTensorHandle handle;
  handle.op_id = new_operation();
  handle.device = device;
  handle.op_device = device;
  handle.dtype = static_cast<std::int32_t>(input.dtype());
  auto* remote = dynamic_cast<RemoteTensor*>(remote_value_of(input));
  if (!remote || remote->task()->context() != task.context()) {
    task.enqueue(send_tensor_item(handle.op_id, device, input.array()), nullptr);
  } else if (remote->task().get() == &task) {
    return remote->handle();
  } else if (input.dtype() == DType::kResource) {
    if (to_function) return remote->handle();
    throw InvalidArgumentError(cat("A resource on ", remote->device(),
                                   " cannot be used by an op on ", device,
                                   ". A function may use both."));
  } else {
    // A send that cannot run would leave the receive behind it waiting.
    if (const std::exception_ptr error = remote->result().wait()) std::rethrow_exception(error);
    const std::string name = new_tensor_name();
    remote->task()->enqueue(remote->send_item(device, name), nullptr);
    const std::string attrs[] = {
        type_attr("tensor_type", input.dtype()), text_attr("tensor_name", name),
        text_attr("send_device", remote->device()), text_attr("recv_device", device),
        number_attr("send_device_incarnation",
                    static_cast<std::int64_t>(remote->task()->incarnation(remote->device())))};
    proto::QueueItem item;
    item.which_item = proto::QueueItem::Case::kOperation;
    proto::EagerOperation& receive = item.operation.make();
    receive.id = handle.op_id;
    receive.name = "_Recv";
    receive.device = device;
    for (const std::string& attr : attrs) receive.attrs.push_back(attr);
    task.enqueue(item_bytes(item), nullptr);
  }
  given.push_back(handle);
  return handle;
}

std::vector<Tensor> EagerClient::enqueue(const std::shared_ptr<RemoteTask>& task,
                                         const std::string& device, const CallTemplate& call,
                                         std::span<const Tensor> inputs, bool is_function) {
  for (const std::string& definition : call.functions) {
    {
      const MutexLock lock(mutex_);
      if (!registered_.emplace(task.get(), definition).second) continue;
    }
    proto::QueueItem item;
    item.which_item = proto::QueueItem::Case::kRegisterFunction;
    item.register_function.make().function_def = definition;
    item.register_function.make().library.make();
    task->enqueue(item_bytes(item), nullptr);
  }
  proto::QueueItem item;
  item.which_item = proto::QueueItem::Case::kOperation;
  proto::EagerOperation& operation = item.operation.make();
  std::vector<proto::RemoteTensorHandle> given;
  for (const Tensor& input : inputs) {
    proto::EagerInput& taken = operation.op_inputs.emplace_back();
    taken.which_item = proto::EagerInput::Case::kRemoteHandle;
    taken.remote_handle.make() = give(*task, device, input, is_function, given);
  }
  operation.id = new_operation();
  operation.name = call.name;
  for (const std::string& attr : call.attrs) operation.attrs.push_back(attr);
  operation.device = device;
  operation.is_function = is_function;
  const auto result = std::make_shared<RemoteResult>();
  // What the task was given for this call alone it forgets once the call has run.
  task->enqueue(item_bytes(item),
                [result, given, weak = std::weak_ptr<RemoteTask>(task)](
                    const std::exception_ptr& error, const proto::QueueResponse& response) {
                  result->set(error, response.shape);
                  const std::shared_ptr<RemoteTask> there = weak.lock();
                  for (std::size_t i = 0; there && i < given.size(); ++i) {
                    proto::QueueItem forget;
                    forget.which_item = proto::QueueItem::Case::kHandleToDecref;
                    forget.handle_to_decref.make() = given[i];
                    there->enqueue(item_bytes(forget), nullptr);
                  }
                });
  // Sizes that the op's shapes do not say, the task does.
  const bool known = std::all_of(call.shapes.begin(), call.shapes.end(),
                                 [](const PartialShape& shape) { return shape.is_fully_known(); });
  if (!known) {
    if (const std::exception_ptr error = result->wait()) {
      task->mark_reported(error);
      std::rethrow_exception(error);
    }
  }
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < call.dtypes.size(); ++i) {
    const Shape shape = known || i >= result->shapes().size() ? call.shapes[i].to_shape()
                                                              : shape_of(result->shapes()[i]);
    Array place = place_for(call.dtypes[i], shape, device, cat("remote_", operation.id));
    Tensor& output = outputs.emplace_back(new TensorImpl(place));
    output.impl()->pending = make_ref<RemoteTensor>(task, device, operation.id, static_cast<int>(i),
                                                    std::move(place), result);
  }
  return outputs;
}

std::vector<Tensor> EagerClient::call(const std::string& device, const OpDef& op,
                                      std::span<const Tensor> inputs, const AttrMap& attrs) {
  std::vector<CallTemplates::Input> kinds;
  for (const Tensor& input : inputs) {
    if (!input.defined())
      throw InvalidArgumentError(cat("Op ", op.name, " is given an undefined tensor."));
    kinds.push_back({input.dtype(), input.shape()});
  }
  return enqueue(task_of(device), device, *templates_.of_op(op, attrs, std::move(kinds)), inputs,
                 false);
}

std::vector<Tensor> EagerClient::call(const std::string& device, const FunctionRef& function,
                                      std::span<const Tensor> args) {
  return enqueue(task_of(device), device, *templates_.of_function(function), args, true);
}

}  // namespace tandem::distribute
