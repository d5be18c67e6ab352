#include "tandem/distribute/internal/remote/remote_tensor.h"

#include <cstring>
#include <future>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/graph/rendezvous_key.h"

namespace tandem::distribute {
namespace {

constexpr const char* kRecvTensor = "/tensorflow.WorkerService/RecvTensor";
constexpr const char* kClientDevice = "/job:client/replica:0/task:0/device:CPU:0";

std::string attr(const char* name, const proto::AttrParts& value) {
  proto::AttrEntry entry;
  entry.key = name;
  entry.value.make() = value;
  return io::proto::WireWriter::write(entry);
}

}  // namespace

std::string new_tensor_name() { return "tandem_" + new_handle(); }

std::string text_attr(const char* name, const std::string& value) {
  proto::AttrParts parts;
  parts.which_value = proto::AttrParts::Case::kS;
  parts.s = value;
  return attr(name, parts);
}
std::string number_attr(const char* name, std::int64_t value) {
  proto::AttrParts parts;
  parts.which_value = proto::AttrParts::Case::kI;
  parts.i = value;
  return attr(name, parts);
}
std::string type_attr(const char* name, DType value) {
  proto::AttrParts parts;
  parts.which_value = proto::AttrParts::Case::kType;
  parts.type = static_cast<std::int32_t>(value);
  return attr(name, parts);
}

void RemoteResult::set(std::exception_ptr error, std::vector<proto::TensorShape> shapes) {
  const MutexLock lock(mutex_);
  error_ = std::move(error);
  shapes_ = std::move(shapes);
  done_ = true;
  answered_.notify_all();
}

std::exception_ptr RemoteResult::wait() {
  MutexLock lock(mutex_);
  while (!done_) lock.wait(answered_);
  return error_;
}

bool RemoteResult::has_failed() {
  const MutexLock lock(mutex_);
  return error_ != nullptr;
}

// A call that has failed left nothing there; TensorFlow's tasks fail what comes with the message
// that would have them forget it.
RemoteTensor::~RemoteTensor() {
  if (result_->has_failed()) return;
  proto::QueueItem item;
  item.which_item = proto::QueueItem::Case::kHandleToDecref;
  proto::RemoteTensorHandle& handle = item.handle_to_decref.make();
  handle.op_id = operation_;
  handle.output_num = output_;
  task_->enqueue(item_bytes(item), nullptr);
}

proto::RemoteTensorHandle RemoteTensor::handle() const {
  proto::RemoteTensorHandle handle;
  handle.op_id = operation_;
  handle.output_num = output_;
  handle.device = device_;
  handle.op_device = device_;
  handle.dtype = static_cast<std::int32_t>(place_.dtype());
  return handle;
}

Bytes RemoteTensor::send_item(const std::string& destination,
                              const std::string& tensor_name) const {
  const std::string attrs[] = {
      type_attr("T", place_.dtype()), text_attr("tensor_name", tensor_name),
      text_attr("send_device", device_), text_attr("recv_device", destination),
      number_attr("send_device_incarnation",
                  static_cast<std::int64_t>(task_->incarnation(device_)))};
  proto::QueueItem item;
  item.which_item = proto::QueueItem::Case::kOperation;
  proto::EagerOperation& send = item.operation.make();
  send.id = -1;
  send.name = "_Send";
  send.device = device_;
  for (const std::string& attribute : attrs) send.attrs.push_back(attribute);
  proto::EagerInput& input = send.op_inputs.emplace_back();
  input.which_item = proto::EagerInput::Case::kRemoteHandle;
  input.remote_handle.make() = handle();
  return item_bytes(item);
}

// A resource stays where it is: to wait for it is to wait for the call that makes it.
void RemoteTensor::wait() {
  if (done()) return;
  const MutexLock lock(mutex_);
  if (done()) return;
  if (place_.dtype() == DType::kResource) {
    if (const std::exception_ptr error = result_->wait()) std::rethrow_exception(error);
  } else {
    fetch();
  }
  fetched_.store(true, std::memory_order_release);
}

void RemoteTensor::fetch() {
  const std::string name = new_tensor_name();
  const RendezvousKey key(device_, task_->incarnation(device_), kClientDevice, name, {});
  // If the send cannot run, nothing answers the call.
  const auto cancellation = std::make_shared<Cancellation>();
  const auto send_error = std::make_shared<std::promise<std::exception_ptr>>();
  std::future<std::exception_ptr> sent = send_error->get_future();
  task_->enqueue(
      send_item(kClientDevice, name),
      [cancellation, send_error](const std::exception_ptr& error, const proto::QueueResponse&) {
        send_error->set_value(error);
        if (error) cancellation->cancel();
      });
  proto::RecvTensorRequest request;
  request.step_id = static_cast<std::int64_t>(task_->context());
  request.rendezvous_key = key.text();
  request.request_id = new_request_id();
  const auto answer = std::make_shared<std::promise<std::pair<Status, Bytes>>>();
  std::future<std::pair<Status, Bytes>> received = answer->get_future();
  task_->channel().call(kRecvTensor, write_message(request), {.cancellation = cancellation},
                        [answer](const Status& status, Bytes reply) {
                          answer->set_value({status, std::move(reply)});
                        });
  auto [status, reply] = received.get();
  if (!status.ok()) {
    if (const std::exception_ptr error = result_->wait()) {
      task_->mark_reported(error);
      std::rethrow_exception(error);
    }
    task_->throw_unreported();
    if (const std::exception_ptr error = sent.get()) std::rethrow_exception(error);
    std::rethrow_exception(status.error());
  }
  proto::RecvTensorResponse response;
  read_message(reply, response);
  const Array value = read_tensor(response.tensor, reply.owner());
  if (value.dtype() != place_.dtype() || !(value.shape() == place_.shape())) {
    throw InternalError(cat(task_->name(), " has sent ", value.dtype(), value.shape(),
                            " instead of ", place_.dtype(), place_.shape(), "."));
  }
  if (value.dtype() == DType::kString) {
    for (std::size_t i = 0; i < value.values<std::string>().size(); ++i)
      place_.data<std::string>()[i] = value.values<std::string>()[i];
  } else if (value.num_bytes() > 0) {
    std::memcpy(place_.raw_data(), value.raw_data(), value.num_bytes());
  }
  task_->throw_unreported();
}

}  // namespace tandem::distribute
