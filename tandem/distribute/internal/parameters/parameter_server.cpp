#include "tandem/distribute/internal/parameters/parameter_server.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/proto/parameters.h"
#include "tandem/fs/file_system.h"

namespace tandem::distribute {
namespace {

constexpr std::string_view kOtherHome = "of-";

// "/job:ps/replica:0/task:1" as a file name, which `home_of_folder` reads.
std::string folder_of_home(std::string home) {
  std::replace(home.begin(), home.end(), '/', '+');
  return cat(kOtherHome, home);
}
std::string home_of_folder(std::string_view folder) {
  std::string home(folder.substr(kOtherHome.size()));
  std::replace(home.begin(), home.end(), '+', '/');
  return home;
}

}  // namespace

ParameterServer::ParameterServer(Options options)
    : options_(std::move(options)), incarnation_(new_handle()) {
  add(options_.task);
  if (options_.folder.empty()) return;
  for (const std::string& name : fs::file_system_of(options_.folder).list(options_.folder)) {
    if (name.starts_with(kOtherHome)) add(home_of_folder(name));
  }
}

std::shared_ptr<ParameterStore> ParameterServer::add(const std::string& home) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ParameterStore>& store = stores_[home];
  if (store) return store;
  std::string folder = options_.folder;
  if (!folder.empty() && home != options_.task) folder += "/" + folder_of_home(home);
  try {
    store = std::make_shared<ParameterStore>(
        ParameterStore::Options{options_.task, home, std::move(folder), options_.channel,
                                options_.run_later, options_.sizes});
  } catch (...) {
    stores_.erase(home);
    throw;
  }
  return store;
}

std::shared_ptr<ParameterStore> ParameterServer::find(const std::string& home) const {
  const MutexLock lock(mutex_);
  const auto found = stores_.find(home.empty() ? options_.task : home);
  return found == stores_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ParameterStore>> ParameterServer::stores() const {
  std::vector<std::shared_ptr<ParameterStore>> all;
  const MutexLock lock(mutex_);
  for (const auto& [home, store] : stores_) all.push_back(store);
  return all;
}

void ParameterServer::add_to(MethodTable& methods) {
  const auto store_of = [this](Bytes& request) {
    proto::HomeOfRequest message;
    read_message(request, message);
    const std::shared_ptr<ParameterStore> store = find(message.home);
    if (store) return store;
    throw UnavailableError(cat("The task ", options_.task, " has nothing of ", message.home, "."));
  };
  const auto serve = [&](const char* name,
                         void (ParameterStore::*method)(Bytes, const ReplyDone&)) {
    methods.add(name, [store_of, method](Bytes request, const CallContext&, const ReplyDone& done) {
      const std::shared_ptr<ParameterStore> store = store_of(request);
      ((*store).*method)(std::move(request), done);
    });
  };
  serve(kCreateParameters, &ParameterStore::create);
  serve(kUploadParameters, &ParameterStore::upload);
  serve(kPullParameters, &ParameterStore::pull);
  serve(kPushGradients, &ParameterStore::push);
  serve(kFlushGradients, &ParameterStore::flush);
  serve(kSetView, &ParameterStore::set_view);
  serve(kForwardRecord, &ParameterStore::forward);
  methods.add(kInstallReplica, [this](Bytes request, const CallContext&, const ReplyDone& done) {
    proto::HomeOfRequest message;
    read_message(request, message);
    add(message.home.empty() ? options_.task : message.home)->install(std::move(request), done);
  });
  methods.add(kLocateParameters,
              [this](Bytes request, const CallContext& context, const ReplyDone& done) {
                proto::LocateRequest message;
                read_message(request, message);
                if (const auto store = find(message.home)) return store->locate(context, done);
                proto::LocateResponse response;
                response.empty = true;
                done({}, write_message(response));
              });
  methods.add(kDescribeParameters,
              [this](const Bytes&, const CallContext&, const ReplyDone& done) { describe(done); });
}

void ParameterServer::describe(const ReplyDone& done) const {
  proto::DescribeResponse response;
  response.incarnation = incarnation_;
  response.replicas = options_.replicas;
  for (const auto& store : stores()) response.state.push_back(store->describe());
  done({}, write_message(response));
}

void ParameterServer::close() {
  for (const auto& store : stores()) store->close();
}

ParameterStore::Figures ParameterServer::figures() const {
  ParameterStore::Figures sum;
  for (const auto& store : stores()) {
    const ParameterStore::Figures one = store->figures();
    sum.num_updates = std::max(sum.num_updates, one.num_updates);
    sum.num_parameters += one.num_parameters;
    sum.num_waiting += one.num_waiting;
    sum.bytes += one.bytes;
    sum.durable = sum.durable || one.durable;
  }
  return sum;
}

}  // namespace tandem::distribute
