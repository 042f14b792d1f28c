# Installs the files under the configured prefix: the units and the programs contain it (the path of
# their configuration). DESTDIR moves everything for packaging.
install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
    message(FATAL_ERROR \"The units and the programs were made for ${CMAKE_INSTALL_PREFIX}: \"
      \"configure with -DCMAKE_INSTALL_PREFIX=\${CMAKE_INSTALL_PREFIX}, or set DESTDIR.\")
  endif()")

# rmemfs contains the mount(8) helper and rmemfs-server is a system daemon: sbin. rmemfsctl asks a
# server over the network and needs no rights: bin, in every user's PATH.
install(TARGETS rmemfs rmemfs-server RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(TARGETS rmemfsctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/installed)

# mount(8) runs /sbin/mount.TYPE. rmemfs recognises its caller by its own name.
foreach(helper mount.rmemfs mount.fuse.rmemfs)
  file(CREATE_LINK rmemfs ${CMAKE_BINARY_DIR}/installed/${helper} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${helper} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()

# lib and not ${CMAKE_INSTALL_LIBDIR}, which may name an architecture: systemd looks in
# /usr/lib and /usr/local/lib.
set(RMEMFS_SYSTEMD_UNIT_DIR lib/systemd/system CACHE PATH "Where systemd units go")
set(RMEMFS_SYSUSERS_DIR lib/sysusers.d CACHE PATH "Where systemd-sysusers looks")
set(RMEMFS_TMPFILES_DIR lib/tmpfiles.d CACHE PATH "Where systemd-tmpfiles looks")
set(RMEMFS_MODULES_LOAD_DIR lib/modules-load.d CACHE PATH "Where systemd-modules-load looks")
foreach(unit rmemfs-server.service rmemfs@.service)
  configure_file(systemd/${unit}.in installed/${unit} @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${unit} DESTINATION ${RMEMFS_SYSTEMD_UNIT_DIR})
endforeach()
install(FILES systemd/rmemfs.sysusers.conf DESTINATION ${RMEMFS_SYSUSERS_DIR} RENAME rmemfs.conf)
install(FILES systemd/rmemfs.modules-load.conf DESTINATION ${RMEMFS_MODULES_LOAD_DIR} RENAME rmemfs.conf)
configure_file(systemd/rmemfs.tmpfiles.conf.in installed/rmemfs.tmpfiles.conf @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/installed/rmemfs.tmpfiles.conf DESTINATION ${RMEMFS_TMPFILES_DIR}
  RENAME rmemfs.conf)

# ARCHITECTURE.md links to the page of each folder.
file(GLOB_RECURSE folder_pages RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
  common/README.md daemon/README.md server/README.md)
foreach(page ${folder_pages})
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()

# Together with all files that these link to.
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md PERFORMANCE.md LICENSE config/example.env
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES config/client.conf config/server.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/config)
install(FILES tests/bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/bench)
install(DIRECTORY tests/bench/plots DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/bench
  FILES_MATCHING PATTERN *.csv PATTERN *.svg)

# The pages name /etc/rmemfs.
foreach(page daemon/rmemfs.8 server/rmemfs-server.8 daemon/rmemfsctl.8 config/rmemfs.conf.5)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${page})
  cmake_path(GET page FILENAME name)
  cmake_path(GET page EXTENSION LAST_ONLY section)
  string(SUBSTRING ${section} 1 1 section)
  file(READ ${page} text)
  string(REPLACE "/etc/rmemfs" "${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs" text "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/installed/${name} "${text}")
  install(FILES ${CMAKE_BINARY_DIR}/installed/${name}
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# Never replace an administrator's file: install an example only where there is none.
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/mounts)
# Root's until systemd-tmpfiles gives it the group rmemfs, which systemd-sysusers makes.
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/keys
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
foreach(file server.conf client.conf)
  install(CODE "
    set(file ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/${file})
    if(EXISTS \"\$ENV{DESTDIR}\${file}\" OR IS_SYMLINK \"\$ENV{DESTDIR}\${file}\")
      message(STATUS \"Kept: \$ENV{DESTDIR}\${file}\")
    else()
      file(INSTALL ${CMAKE_SOURCE_DIR}/config/${file} DESTINATION \"${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs\")
    endif()")
endforeach()

install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX MATCHES \"^/(usr)?$\")
    message(NOTICE \"mount(8) finds helpers in /sbin only. For mount -t rmemfs and fstab:\\n\"
      \"  ln -s ${CMAKE_INSTALL_FULL_SBINDIR}/rmemfs /sbin/mount.rmemfs\\n\"
      \"  ln -s ${CMAKE_INSTALL_FULL_SBINDIR}/rmemfs /sbin/mount.fuse.rmemfs\")
  endif()")
