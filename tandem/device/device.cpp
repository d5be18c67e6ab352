#include "tandem/device/device.h"

namespace tandem {

Allocator::~Allocator() = default;
Stream::~Stream() = default;
Device::~Device() = default;
Backend::~Backend() = default;

}  // namespace tandem
