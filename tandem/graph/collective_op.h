#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/op_decl.h"
#include "tandem/graph/op_def.h"

namespace tandem {

/// Marks an op whose nodes wait for each other, as members of a group do. Each of them runs, but
/// tracing puts no order among them, nor between them and other effects: one would wait for
/// another that comes after it. Define one at namespace scope beside the op.
class TANDEM_EXPORT CollectiveOpRegistration {
 public:
  explicit CollectiveOpRegistration(const OpRegistration& op);

 private:
  friend bool is_collective(const OpDef& op);
  const OpRegistration& op_;
  const CollectiveOpRegistration* const next_;
};

TANDEM_EXPORT bool is_collective(const OpDef& op);

}  // namespace tandem
