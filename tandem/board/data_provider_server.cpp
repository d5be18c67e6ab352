#include "tandem/board/data_provider_server.h"

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "tandem/core/error.h"

namespace tandem::board {
namespace {

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Status status_of(const Error& error) {
  if (dynamic_cast<const UnimplementedError*>(&error) != nullptr)
    return {grpc::StatusCode::UNIMPLEMENTED, error.what()};
  if (dynamic_cast<const NotFoundError*>(&error) != nullptr)
    return {grpc::StatusCode::NOT_FOUND, error.what()};
  if (dynamic_cast<const InvalidArgumentError*>(&error) != nullptr)
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  return {grpc::StatusCode::INTERNAL, error.what()};
}

// One call: reads the request, then writes the responses one after the other. gRPC calls the On…
// functions one at a time, and deletes nothing: the call does so itself at its end.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(const io::EventStore& store, std::string method)
      : store_(store), method_(std::move(method)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "The call has no request."});
    try {
      responses_ = store_.answer(method_, bytes_of(request_));
    } catch (const Error& error) {
      return Finish(status_of(error));
    } catch (const std::exception& error) {
      return Finish({grpc::StatusCode::INTERNAL, error.what()});
    }
    write_next();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "The client has gone."});
    write_next();
  }

  void OnDone() override { delete this; }

 private:
  void write_next() {
    if (next_ == responses_.size()) return Finish(grpc::Status::OK);
    response_ = buffer_of(responses_[next_++]);
    StartWrite(&response_);
  }

  const io::EventStore store_;
  const std::string method_;
  grpc::ByteBuffer request_, response_;
  std::vector<std::string> responses_;
  std::size_t next_ = 0;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(io::EventStore store) : store_(std::move(store)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    constexpr std::string_view kPrefix = "/tensorboard.data.TensorBoardDataProvider/";
    const std::string& path = context->method();
    // What another service is asked for is a method that the store does not know.
    return new Call(store_, path.starts_with(kPrefix) ? path.substr(kPrefix.size()) : path);
  }

 private:
  const io::EventStore store_;
};

}  // namespace

struct DataProviderServer::State {
  explicit State(const io::EventStore& store) : service(store) {}
  Service service;
  std::unique_ptr<grpc::Server> server;
  std::string address;
};

DataProviderServer::DataProviderServer(const io::EventStore& store, const std::string& address)
    : state_(std::make_unique<State>(store)) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    throw InvalidArgumentError(cat("An address is HOST:PORT, not '", address, "'."));
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&state_->service);
  state_->server = builder.BuildAndStart();
  if (!state_->server || port == 0)
    throw UnavailableError(cat("TensorBoard's data provider can't listen at ", address, "."));
  state_->address = cat(address.substr(0, colon), ":", port);
}

DataProviderServer::~DataProviderServer() {
  state_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  state_->server->Wait();
}

const std::string& DataProviderServer::address() const { return state_->address; }

}  // namespace tandem::board
