#pragma once

#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/rpc/method_table.h"

namespace tandem::distribute {

inline constexpr const char* kCreateParameters = "/tandem.ParameterService/Create";
inline constexpr const char* kPullParameters = "/tandem.ParameterService/Pull";
inline constexpr const char* kPushGradients = "/tandem.ParameterService/Push";
inline constexpr const char* kFlushGradients = "/tandem.ParameterService/Flush";

/// Serves a store, which must outlive the table's calls.
inline void add_parameter_service(MethodTable& methods, ParameterStore& store) {
  const auto add = [&](const char* name, void (ParameterStore::*method)(Bytes, const ReplyDone&)) {
    methods.add(name, [&store, method](Bytes request, const CallContext&, const ReplyDone& done) {
      (store.*method)(std::move(request), done);
    });
  };
  add(kCreateParameters, &ParameterStore::create);
  add(kPullParameters, &ParameterStore::pull);
  add(kPushGradients, &ParameterStore::push);
  add(kFlushGradients, &ParameterStore::flush);
}

}  // namespace tandem::distribute
