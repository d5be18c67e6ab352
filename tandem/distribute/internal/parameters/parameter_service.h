#pragma once

namespace tandem::distribute {

// Methods of parameter servers, for the chief and workers.
inline constexpr const char* kCreateParameters = "/tandem.ParameterService/Create";
inline constexpr const char* kUploadParameters = "/tandem.ParameterService/Upload";
inline constexpr const char* kPullParameters = "/tandem.ParameterService/Pull";
inline constexpr const char* kPushGradients = "/tandem.ParameterService/Push";
inline constexpr const char* kFlushGradients = "/tandem.ParameterService/Flush";
inline constexpr const char* kLocateParameters = "/tandem.ParameterService/Locate";
inline constexpr const char* kDescribeParameters = "/tandem.ParameterService/Describe";
inline constexpr const char* kSetView = "/tandem.ParameterService/SetView";

// Methods of parameter servers, for each other.
inline constexpr const char* kInstallReplica = "/tandem.ParameterService/Install";
inline constexpr const char* kForwardRecord = "/tandem.ParameterService/Forward";

}  // namespace tandem::distribute
