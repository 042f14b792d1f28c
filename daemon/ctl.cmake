# The admin tool.
add_executable(rmemfsctl rmemfsctl.c ctl_client.c ctl_print.c)
target_link_libraries(rmemfsctl PRIVATE rmemfs_common PkgConfig::jansson)
install(TARGETS rmemfsctl RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
