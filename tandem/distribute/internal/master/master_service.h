#pragma once

#include <memory>
#include <string>

#include "tandem/distribute/internal/master/master.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/wire/request_ids.h"

namespace tandem::distribute {

/// TensorFlow's MasterService: what a Session client asks of a server.
class MasterService {
 public:
  /// `master` must outlive this, and this the table's calls.
  explicit MasterService(Master& master) : master_(master) {}
  void add_to(MethodTable& methods);

 private:
  void create_session(Bytes request, const CallContext& context, const ReplyDone& done);
  void extend_session(Bytes request, const CallContext& context, const ReplyDone& done);
  void close_session(Bytes request, const CallContext& context, const ReplyDone& done);
  void list_devices(Bytes request, const CallContext& context, const ReplyDone& done);
  void reset(Bytes request, const CallContext& context, const ReplyDone& done);
  void run_step(Bytes request, const CallContext& context, const ReplyDone& done);
  void set_up_partial_run(Bytes request, const CallContext& context, const ReplyDone& done);
  void make_callable(Bytes request, const CallContext& context, const ReplyDone& done);
  void run_callable(Bytes request, const CallContext& context, const ReplyDone& done);
  void release_callable(Bytes request, const CallContext& context, const ReplyDone& done);

  Master& master_;
  SeenRequests run_requests_;
};

}  // namespace tandem::distribute
